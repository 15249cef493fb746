//! The groups that run on a node, as its handles and its peers' requests find them.

use crate::supervisor::Replica;
use petuum_types::GroupId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// The groups that are started.
#[derive(Clone, Default)]
pub(crate) struct Groups(Arc<Mutex<BTreeMap<GroupId, Arc<Replica>>>>);

impl Groups {
    pub(crate) fn lock(&self) -> MutexGuard<'_, BTreeMap<GroupId, Arc<Replica>>> {
        self.0.lock().expect("nothing panics while it is held")
    }

    pub(crate) fn find(&self, group: GroupId) -> Option<Arc<Replica>> {
        self.lock().get(&group).cloned()
    }
}
