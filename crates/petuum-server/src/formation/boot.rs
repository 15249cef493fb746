//! What a peer remembers of a node, and its judgement of the next boot (P21). Pure.

use petuum_types::NodeId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The highest a peer has seen of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Remembered {
    pub(crate) boot: u64,
    pub(crate) nonce: u64,
    pub(crate) life: u64,
    /// Term by group. Terms only grow on one disk; last indices do not (a follower's tail may be cut), so those are
    /// shown for the operator and not judged.
    pub(crate) terms: BTreeMap<u32, u64>,
}

/// Starting the node empty is no way out: it would be refused as an emptied one.
const WHAT_TO_DO: &str = "put back the data directory with which it ran last; if that is lost, leave the node stopped: \
                          this version cannot replace a node yet, and the others go on while they are a majority";

/// What to remember from now on, or why the node must not start.
pub(crate) fn judge(node: NodeId, known: Option<&Remembered>, shown: &Remembered) -> Result<Remembered, String> {
    let Some(known) = known else { return Ok(shown.clone()) };
    let hint = format!("an old copy of its data directory was put back; {WHAT_TO_DO}");
    if shown.life != known.life {
        return Err(format!(
            "{node} shows a data directory that was emptied or replaced: it has forgotten its votes and what it \
             acknowledged; {WHAT_TO_DO}"
        ));
    }
    if shown.boot < known.boot {
        return Err(format!("{node} shows boot {}, boot {} has been seen: {hint}", shown.boot, known.boot));
    }
    if shown.boot == known.boot && shown.nonce != known.nonce {
        return Err(format!("{node} shows boot {} a second time with another nonce: {hint}", shown.boot));
    }
    for (group, term) in &known.terms {
        let now = shown.terms.get(group).copied().unwrap_or(0);
        if now < *term {
            return Err(format!("{node} shows term {now} in group {group}, term {term} has been seen: {hint}"));
        }
    }
    Ok(shown.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(boot: u64, nonce: u64, term: u64) -> Remembered {
        Remembered { boot, nonce, life: 77, terms: BTreeMap::from([(1, term)]) }
    }

    #[test]
    fn golden_bytes() {
        let bytes = petuum_types::codec::encode(&shown(3, 300, 4));
        assert_eq!(bytes.iter().map(|b| format!("{b:02x}")).collect::<String>(), "0103fb2c014d010104");
    }

    #[test]
    fn p21_growing_boots_and_repeats_pass() {
        let first = judge(NodeId(1), None, &shown(1, 7, 0)).unwrap();
        let again = judge(NodeId(1), Some(&first), &shown(1, 7, 0)).unwrap();
        assert_eq!(judge(NodeId(1), Some(&again), &shown(2, 9, 3)).unwrap(), shown(2, 9, 3));
    }

    #[test]
    fn p21_an_old_copy_is_refused_however_it_shows() {
        let known = shown(5, 7, 4);
        for old in
            [shown(4, 7, 9), shown(5, 8, 9), shown(6, 1, 3), Remembered { boot: 6, life: 77, ..Remembered::default() }]
        {
            let refusal = judge(NodeId(1), Some(&known), &old).unwrap_err();
            assert!(refusal.contains("old copy") && refusal.contains(WHAT_TO_DO), "{refusal}");
        }
    }

    /// Was let in once it had been started as often as its peers remembered: nodes show term 0 in their first life.
    #[test]
    fn p21_an_emptied_directory_is_refused_however_often_it_was_started() {
        for boot in [1, 5, 6, 100] {
            let emptied = Remembered { life: 78, ..shown(boot, 9, 9) };
            let refusal = judge(NodeId(1), Some(&shown(5, 7, 0)), &emptied).unwrap_err();
            assert!(refusal.contains("emptied") && refusal.contains(WHAT_TO_DO), "{refusal}");
        }
    }
}
