//! Calls of operators and clients that make and drop things: the cluster, jobs, tables (P18).
//!
//! Not here: who is in a job ([`crate::membership`]); repeats of a call ([`crate::answers`]). A call that names what exists
//! with the same definition succeeds; with another one it is refused and told the difference.

use crate::command::{ControlAnswer, JobSettings};
use crate::decision::{Decision, Refusal, refuse};
use crate::limits::{ADDRESS_BYTES_MAX, LEASE_MS_MAX, LEASE_MS_MIN, NODES_MAX, REPLICAS_MAX, WORKERS_TOTAL_MAX};
use crate::state::{Cluster, Control, Job, Table, TablePhase};
use petuum_types::limits::{JOBS_MAX, NAME_BYTES_MAX, TABLES_MAX, WORKERS_MAX};
use petuum_types::map::ShardMap;
use petuum_types::{ClusterId, ErrorKind, Generation, Incarnation, JobId, MapEpoch, ShardId, TableId, TableSchema};
use std::collections::{BTreeMap, BTreeSet};

impl Control {
    pub(crate) fn form(&mut self, cluster: ClusterId, map: ShardMap) -> Decision {
        if let Some(formed) = &self.cluster {
            // Two calls of `init` draw two ids; the first stands, and the second is told it.
            if formed.map == map {
                return Ok(ControlAnswer::Formed { cluster: formed.id });
            }
            return refuse(
                ErrorKind::AlreadyExists,
                format!(
                    "the cluster is formed already, as {} with another shard map at {}",
                    formed.id, formed.map.epoch
                ),
            );
        }
        check_map(&map)?;
        self.cluster = Some(Cluster { id: cluster, map, owned: None });
        Ok(ControlAnswer::Formed { cluster })
    }

    fn initialized(&self) -> Result<(), Refusal> {
        match self.cluster {
            Some(_) => Ok(()),
            None => refuse(ErrorKind::NotInitialized, "the cluster has not been formed; run `petuum ctl init`"),
        }
    }

    pub(crate) fn create_job(&mut self, name: String, workers: u32, settings: JobSettings) -> Decision {
        self.initialized()?;
        check_job(&name, workers, settings)?;
        if let Some((id, job)) = self.job_named(&name) {
            if (job.size, job.settings) == (workers, settings) {
                return Ok(ControlAnswer::Job { job: id, created: false });
            }
            return refuse(
                ErrorKind::AlreadyExists,
                format!(
                    "job `{name}` exists with {} workers and a lease of {} ms; got {workers} workers and {} ms",
                    job.size, job.settings.lease_ms, settings.lease_ms
                ),
            );
        }
        let total = self.jobs.values().map(|job| u64::from(job.size)).sum::<u64>() + u64::from(workers);
        if self.jobs.len() >= JOBS_MAX || total > WORKERS_TOTAL_MAX {
            return refuse(
                ErrorKind::ResourceExhausted,
                format!(
                    "{} jobs and {total} workers with this one; a cluster has at most {JOBS_MAX} and {WORKERS_TOTAL_MAX}",
                    self.jobs.len() + 1
                ),
            );
        }
        self.last_job = JobId(self.last_job.0 + 1);
        let job = Job {
            name,
            generation: Generation(1),
            size: workers,
            settings,
            open: false,
            started: false,
            last_incarnation: Incarnation(0),
            workers: BTreeMap::new(),
        };
        self.jobs.insert(self.last_job, job);
        Ok(ControlAnswer::Job { job: self.last_job, created: true })
    }

    pub(crate) fn job_mut(&mut self, job: JobId) -> Result<&mut Job, Refusal> {
        self.initialized()?;
        match self.jobs.get_mut(&job) {
            Some(job) => Ok(job),
            None => refuse(ErrorKind::NotFound, format!("{job} is unknown; `petuum ctl job create` makes one")),
        }
    }

    pub(crate) fn create_table(&mut self, mut schema: TableSchema) -> Decision {
        let job_name = self.job_mut(schema.job)?.name.clone();
        if let Err(message) = schema.validate() {
            return refuse(ErrorKind::InvalidArgument, message);
        }
        if let Some(existing) = self.table_named(schema.job, &schema.name) {
            schema.id = existing.schema.id;
            if existing.schema == schema {
                return Ok(ControlAnswer::Table { table: schema.id, created: false });
            }
            return refuse(
                ErrorKind::AlreadyExists,
                format!("table `{}` of job `{job_name}` exists with another definition", schema.name),
            );
        }
        if self.tables.len() >= TABLES_MAX {
            return refuse(
                ErrorKind::ResourceExhausted,
                format!("the cluster has {} tables, as many as it may; drop some", self.tables.len()),
            );
        }
        let id = self.last_table.0.checked_add(1).expect("fewer than 2^32 tables were ever created");
        self.last_table = TableId(id);
        schema.id = self.last_table;
        self.tables.insert(schema.id, Table { schema, phase: TablePhase::Creating });
        Ok(ControlAnswer::Table { table: self.last_table, created: true })
    }

    pub(crate) fn drop_table(&mut self, job: JobId, name: &str) -> Decision {
        let job_name = self.job_mut(job)?.name.clone();
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return refuse(
                ErrorKind::InvalidArgument,
                format!("a name of {} bytes; expected 1 to {NAME_BYTES_MAX}", name.len()),
            );
        }
        let named = self.table_named(job, name);
        // A second call while the first is under way waits for the same drop.
        let table = named.or_else(|| self.tables(job).filter(|table| table.schema.name == name).last());
        let Some(id) = table.map(|table| table.schema.id) else {
            return refuse(ErrorKind::NotFound, format!("job `{job_name}` has no table `{name}`"));
        };
        self.tables.get_mut(&id).expect("found above").phase = TablePhase::Dropping;
        Ok(ControlAnswer::Dropping { table: id })
    }
}

fn check_job(name: &str, workers: u32, settings: JobSettings) -> Result<(), Refusal> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return refuse(
            ErrorKind::InvalidArgument,
            format!("a job's name of {} bytes; expected 1 to {NAME_BYTES_MAX}", name.len()),
        );
    }
    if workers == 0 || workers > WORKERS_MAX {
        return refuse(ErrorKind::InvalidArgument, format!("{workers} workers; expected 1 to {WORKERS_MAX}"));
    }
    if !(LEASE_MS_MIN..=LEASE_MS_MAX).contains(&settings.lease_ms) {
        return refuse(
            ErrorKind::InvalidArgument,
            format!("a lease of {} ms; expected {LEASE_MS_MIN} to {LEASE_MS_MAX}", settings.lease_ms),
        );
    }
    Ok(())
}

/// Whether a cluster can be formed with this map; `Form` refuses what this refuses.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] and a sentence with expected and got.
pub fn check_map(map: &ShardMap) -> Result<(), (ErrorKind, String)> {
    if let Err(message) = map.validate() {
        return refuse(ErrorKind::InvalidArgument, message);
    }
    if map.epoch == MapEpoch(0) {
        return refuse(ErrorKind::InvalidArgument, "a shard map of epoch 0; expected 1 or more");
    }
    if map.nodes.len() > NODES_MAX {
        return refuse(ErrorKind::InvalidArgument, format!("{} nodes; expected 1 to {NODES_MAX}", map.nodes.len()));
    }
    if let Some((node, address)) = map.nodes.iter().find(|(_, a)| a.is_empty() || a.len() > ADDRESS_BYTES_MAX) {
        return refuse(
            ErrorKind::InvalidArgument,
            format!("{node} has an address of {} bytes; expected 1 to {ADDRESS_BYTES_MAX}", address.len()),
        );
    }
    if map.shards.contains_key(&ShardId(u32::MAX)) {
        return refuse(ErrorKind::InvalidArgument, format!("{} has no group to replicate it", ShardId(u32::MAX)));
    }
    for (shard, place) in &map.shards {
        if place.replicas.len() > REPLICAS_MAX {
            return refuse(
                ErrorKind::InvalidArgument,
                format!("{shard} has {} replicas; expected 1 to {REPLICAS_MAX}", place.replicas.len()),
            );
        }
        if place.replicas.iter().collect::<BTreeSet<_>>().len() != place.replicas.len() {
            return refuse(ErrorKind::InvalidArgument, format!("{shard} has two replicas on one node"));
        }
    }
    Ok(())
}
