//! Staging (P2): a part is checked whole and kept; no row is touched before its tick.

use crate::member::Member;
use crate::shard::Shard;
use bytes::Bytes;
use petuum_kernels::first_non_finite_f32;
use petuum_types::message::{Kind, WorkerMessage};
use petuum_types::outcome::{Outcome, Refusal, Retry};
use petuum_types::part::{Part, Section};
use petuum_types::{JobId, NonFinite, TableSchema, ValueType, limits};

/// A part that fills less than this fraction of its entry is copied when it is kept, so that a few bytes cannot hold an
/// entry's whole memory: what is held is at most this many times what is counted (G10).
const SHARED_FRACTION: usize = 16;

impl Shard {
    /// A leader's retryable answer to a part that would pass the worker's staged bytes now. Ticks are never refused for
    /// limits (P3): they free memory.
    pub(crate) fn over_limit_for_now(&self, member: &Member, message: &WorkerMessage) -> Option<Outcome> {
        if message.kind != Kind::Stage || message.clock < member.clock {
            return None;
        }
        let refusal = self.check_staged_bytes(member, message).err()?;
        Some(Outcome::Retry(Retry::Busy(refusal.to_string())))
    }

    /// Checks a part that is to be kept until its tick.
    pub(crate) fn check_stage(&self, member: &Member, message: &WorkerMessage) -> Result<(), Refusal> {
        self.check_part(message.job, &message.payload)?;
        let (clock, part) = (message.clock, message.count);
        if member.staged.holds(clock, message.epoch, part) {
            // Two contents of one part must never both count, nor one silently stand in for the other.
            return Err(Refusal::Malformed(format!(
                "part {part} of {clock} is already staged; expected an abort of the clock before another content"
            )));
        }
        self.check_staged_bytes(member, message)
    }

    fn check_staged_bytes(&self, member: &Member, message: &WorkerMessage) -> Result<(), Refusal> {
        let freed = member.staged.outdated_bytes(message.clock, message.epoch);
        let bytes = member.staged.bytes - freed + message.payload.len() as u64;
        let limit = self.settings.staged_bytes_max as u64;
        if bytes > limit { Err(Refusal::StagedBytes { bytes, limit }) } else { Ok(()) }
    }

    /// Checks everything about a part that applying it relies on: tables, types, columns, owners, finite values.
    pub(crate) fn check_part(&self, job: JobId, payload: &[u8]) -> Result<(), Refusal> {
        if payload.len() > limits::PART_BYTES_MAX {
            let (got, limit) = (payload.len(), limits::PART_BYTES_MAX);
            return Err(Refusal::Malformed(format!("{got} bytes; expected at most {limit}: cut it into several")));
        }
        let part = Part::parse(payload).map_err(|e| Refusal::Malformed(e.to_string()))?;
        part.sections().try_for_each(|section| self.check_section(job, &section))
    }

    fn check_section(&self, job: JobId, section: &Section<'_>) -> Result<(), Refusal> {
        let schema = self.schema_for(job, section)?;
        check_shape(schema, section)?;
        let reject = schema.non_finite == NonFinite::Reject && schema.value_type == ValueType::F32;
        for (row, values) in section.iter() {
            if !self.owns(schema.id, row) {
                return Err(Refusal::WrongShard { table: schema.id, row });
            }
            if reject && let Some(at) = first_non_finite_f32(values) {
                let column = section.first_column + u32::try_from(at).expect("within the section's columns");
                return Err(Refusal::NonFinite { table: schema.id, row, column });
            }
        }
        Ok(())
    }

    fn schema_for(&self, job: JobId, section: &Section<'_>) -> Result<&TableSchema, Refusal> {
        let table = section.table;
        match self.tables.schema(table) {
            Some(schema) if schema.job == job => Ok(schema),
            Some(_) => Err(Refusal::ForeignTable { table }),
            None if self.tables.was_dropped(table) => Err(Refusal::ForeignTable { table }),
            None => Err(Refusal::UnknownTable { table }),
        }
    }
}

fn check_shape(schema: &TableSchema, section: &Section<'_>) -> Result<(), Refusal> {
    let table = schema.id;
    let (row, _) = section.iter().next().expect("a section has at least one row");
    if section.value_type != schema.value_type {
        let (expected, got) = (schema.value_type, section.value_type);
        return Err(Refusal::WrongType { table, row, expected, got });
    }
    let first = section.first_column;
    let end = u64::from(first) + u64::from(section.columns);
    if end > u64::from(schema.width) {
        return Err(Refusal::Column { table, row, first, end, width: schema.width });
    }
    Ok(())
}

/// The payload as it is kept: shared with the entry, or copied if it is a small piece of a large one.
pub(crate) fn kept(payload: &Bytes, entry_bytes: usize) -> Bytes {
    if payload.len() < entry_bytes / SHARED_FRACTION { Bytes::copy_from_slice(payload) } else { payload.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_part_is_shared_and_a_small_one_does_not_hold_its_entry() {
        let entry = Bytes::from(vec![7; 64 * 1024]);
        let (large, small) = (entry.slice(..32 * 1024), entry.slice(..100));
        assert_eq!(kept(&large, entry.len()).as_ptr(), large.as_ptr());
        let copy = kept(&small, entry.len());
        assert!(copy == small && copy.as_ptr() != small.as_ptr());
    }
}
