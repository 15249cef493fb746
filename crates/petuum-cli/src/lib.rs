//! The petuum command
