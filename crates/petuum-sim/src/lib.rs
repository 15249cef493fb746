//! A cluster in a simulated network, on simulated disks, from one seed
