//! What planted defects need of a shard's inside. Nothing calls it where no defect is planted.

use crate::shard::Shard;
use petuum_kernels::initial_row;
use petuum_types::LogIndex;
use petuum_types::read::Read;
use std::sync::Arc;

impl Shard {
    /// What P13 forbids: a row exists because it was read.
    pub fn create_rows_of(&mut self, read: &Read) {
        let Some(table) = self.tables.live.get_mut(&read.table) else { return };
        for row in &read.rows {
            if table.row(*row).is_none() {
                let values = initial_row(&table.schema, *row);
                table.restore(*row, LogIndex(0), values);
            }
        }
    }

    /// What installing a snapshot must not do: rows of the state before stay where the snapshot has others.
    pub fn keep_rows_of(&mut self, before: &Self) {
        for (id, table) in &mut self.tables.live {
            let Some(old) = before.tables.live.get(id) else { continue };
            for (slot, rows) in &old.slots {
                for (row, found) in rows.rows.iter() {
                    let place = table.slots.entry(*slot).or_default();
                    Arc::make_mut(&mut place.rows).insert(*row, found.clone());
                }
            }
        }
    }
}
