//! What a store must keep on any disk, to be run on the simulated one as on files: a disk that loses power, and a
//! random history of writes over several groups, checked against a model after each crash.
//!
//! The check is exact. All groups share one WAL, so after a crash the store must equal the model after *some* number of
//! writes, over all groups at once, and that number is at least that of the last write whose callback heard `Ok`.

use crate::{Error, GroupStore, Record, Store, StoreOptions, SyncDone, Syncer};
use petuum_types::GroupId;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A disk that can lose power.
pub trait Disk {
    /// Where the store lies.
    fn dir(&self) -> PathBuf;
    /// How it is opened.
    fn options(&self) -> StoreOptions;
    /// Everything written so far was synced.
    fn synced(&mut self) {}
    /// A write or a sync was made.
    fn stepped(&mut self) {}
    /// Power fails: what is written from now on is lost. The store is dropped afterwards.
    fn power_off(&mut self) {}
    /// Power returns, and with it whatever the disk chose to keep of what was not synced.
    fn power_on(&mut self) {}
}

/// What happened, so that a test can see that it tested something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Writes made.
    pub writes: usize,
    /// Writes known to be durable when power failed.
    pub acknowledged: usize,
    /// Writes that a crash lost; none of them acknowledged.
    pub lost: usize,
}

/// Writes, syncs and crashes, `crashes` times, and checks each time what is there.
///
/// # Errors
/// The store's: opening, writing and reading must all succeed.
///
/// # Panics
/// If an acknowledged write is lost, the store is in a state that never was, or a callback is called wrongly.
pub fn crashes_keep_what_was_acknowledged(disk: &mut dyn Disk, seed: u64, crashes: u32) -> Result<Report, Error> {
    let mut dice = Dice(seed);
    let mut report = Report::default();
    let mut kept = Model::default();
    for crash in 0..=crashes {
        let store = Store::open(&disk.dir(), disk.options())?;
        disk.synced();
        let mut run = Run::new(store, kept);
        let survived = run.observe()?;
        assert_eq!(run.history[0], survived, "seed {seed}, crash {crash}: reopening changed the store");
        // Small and often synced, or so much between two syncs that logs are switched.
        let load = if dice.below(2) == 0 { (6, 300) } else { (40, 6000) };
        for _ in 0..dice.below(120) {
            run.step(&mut dice, load, disk)?;
            disk.stepped();
        }
        disk.power_off();
        let (history, acknowledged) = run.end();
        disk.power_on();

        let store = Store::open(&disk.dir(), disk.options())?;
        let found = Run::new(store, Model::default()).observe()?;
        // The last match is taken: writes that change nothing make neighbours equal.
        let Some(number) = history.iter().rposition(|model| *model == found) else {
            panic!("seed {seed}, crash {crash}: a state that never was\n{found:#?}\nlast: {:#?}", history.last());
        };
        assert!(
            number >= acknowledged,
            "seed {seed}, crash {crash}: write {acknowledged} was acknowledged, but only {number} are there"
        );
        report.writes += history.len() - 1;
        report.acknowledged += acknowledged;
        report.lost += history.len() - 1 - number;
        kept = found;
    }
    Ok(report)
}

const GROUPS: u32 = 3;
const RECORDS: [Record; 3] = [Record::Vote, Record::Committed, Record::Extra(7)];

/// What a store should hold.
type Model = [GroupModel; GROUPS as usize];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct GroupModel {
    purged: Option<(u64, Vec<u8>)>,
    log: BTreeMap<u64, Vec<u8>>,
    records: [Option<Vec<u8>>; RECORDS.len()],
    snapshot: Option<(Vec<u8>, Vec<Vec<u8>>)>,
}

impl GroupModel {
    fn next(&self) -> u64 {
        let behind_purged = self.purged.as_ref().map_or(0, |(upto, _)| upto + 1);
        self.log.last_key_value().map_or(behind_purged, |(last, _)| last + 1)
    }
}

/// One life of the store, between two crashes.
struct Run {
    store: Store,
    syncer: Syncer,
    /// The model after each number of writes.
    history: Vec<Model>,
    /// The greatest number of writes that a callback called durable.
    acknowledged: Arc<AtomicUsize>,
    waiting: Arc<AtomicUsize>,
}

impl Run {
    fn new(store: Store, model: Model) -> Self {
        let syncer = store.syncer();
        Self { store, syncer, history: vec![model], acknowledged: Arc::default(), waiting: Arc::default() }
    }

    /// A callback for the write that comes next.
    fn done(&self) -> SyncDone {
        let (number, acknowledged, waiting) = (self.history.len(), self.acknowledged.clone(), self.waiting.clone());
        waiting.fetch_add(1, Ordering::SeqCst);
        Box::new(move |outcome| {
            waiting.fetch_sub(1, Ordering::SeqCst);
            if outcome.is_ok() {
                acknowledged.fetch_max(number, Ordering::SeqCst);
            }
        })
    }

    fn step(
        &mut self,
        dice: &mut Dice,
        (sync_one_in, entry_bytes): (u32, u32),
        disk: &mut dyn Disk,
    ) -> Result<(), Error> {
        if dice.below(sync_one_in) == 0 {
            let waited = self.waiting.load(Ordering::SeqCst);
            assert_eq!(self.syncer.run_once()?, waited, "a sync calls back everybody who waits");
            assert_eq!(self.waiting.load(Ordering::SeqCst), 0);
            disk.synced();
            return Ok(());
        }
        let number = dice.below(GROUPS);
        let group = self.store.group(GroupId(number));
        let mut model = self.history.last().expect("the history begins with one").clone();
        self.write(dice, entry_bytes, &group, &mut model[number as usize])?;
        self.history.push(model);
        Ok(())
    }

    fn write(
        &self,
        dice: &mut Dice,
        entry_bytes: u32,
        group: &GroupStore,
        model: &mut GroupModel,
    ) -> Result<(), Error> {
        match dice.below(10) {
            0..=4 => {
                let first = model.next();
                let entries: Vec<(u64, Vec<u8>)> =
                    (first..=first + u64::from(dice.below(5))).map(|index| (index, dice.bytes(entry_bytes))).collect();
                group.append(entries.iter().map(|(index, entry)| (*index, entry)), self.done())?;
                model.log.extend(entries);
            }
            5 | 6 => {
                let (which, bytes) = (dice.below(3) as usize, dice.bytes(40));
                group.put_record(RECORDS[which], &bytes, Some(self.done()))?;
                model.records[which] = Some(bytes);
            }
            7 => {
                let Some((&first, _)) = model.log.first_key_value() else { return Ok(()) };
                let kept = first + u64::from(dice.below(8));
                group.truncate_after(Some(kept))?;
                model.log.retain(|index, _| *index <= kept);
            }
            8 => {
                // Now and then past the log's end, as after a snapshot of a peer.
                let first = model.log.first_key_value().map_or(model.next(), |(first, _)| *first);
                let (upto, marker) = (first + u64::from(dice.below(12)), dice.bytes(20));
                group.purge(upto, &marker)?;
                model.purged = Some((upto, marker));
                model.log.retain(|index, _| *index > upto);
            }
            _ => {
                let pieces: Vec<Vec<u8>> = (0..dice.below(4)).map(|_| dice.bytes(2000)).collect();
                let mut writer = group.begin_snapshot()?;
                for piece in &pieces {
                    writer.push(piece)?;
                }
                if dice.below(3) > 0 {
                    let manifest = dice.bytes(30);
                    writer.publish(&manifest, self.done())?;
                    model.snapshot = Some((manifest, pieces));
                }
            }
        }
        Ok(())
    }

    /// Reads all there is.
    fn observe(&self) -> Result<Model, Error> {
        let mut model = Model::default();
        for (number, model) in (0..).zip(model.iter_mut()) {
            let group = self.store.group(GroupId(number));
            model.purged = group.purged()?.map(|(upto, marker)| (upto, marker.to_vec()));
            let last = group.last()?.map(|(last, _)| last);
            if let (Some(mut from), Some(last)) = (group.first()?, last) {
                while from <= last {
                    let entries = group.read(from, last + 1, 1000)?;
                    from += entries.len() as u64;
                    model.log.extend(entries.into_iter().map(|(index, entry)| (index, entry.to_vec())));
                }
            }
            for (record, kept) in RECORDS.into_iter().zip(&mut model.records) {
                *kept = group.get_record(record)?.map(|bytes| bytes.to_vec());
            }
            if let Some(snapshot) = group.snapshot()? {
                let pieces =
                    snapshot.pieces().map(|piece| piece.map(|piece| piece.to_vec())).collect::<Result<_, _>>()?;
                model.snapshot = Some((snapshot.manifest().to_vec(), pieces));
            }
        }
        Ok(model)
    }

    /// Drops the store without a sync; what was written, and how much of it was acknowledged.
    fn end(self) -> (Vec<Model>, usize) {
        let acknowledged = self.acknowledged.load(Ordering::SeqCst);
        drop(self.syncer);
        drop(self.store);
        assert_eq!(self.waiting.load(Ordering::SeqCst), 0, "who waited was told that the store is closed");
        assert_eq!(self.acknowledged.load(Ordering::SeqCst), acknowledged, "closing acknowledges nothing");
        (self.history, acknowledged)
    }
}

/// Random numbers from a seed (SplitMix64), so that a run repeats.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u32) -> u32 {
        u32::try_from(self.next() % u64::from(bound)).expect("below a u32")
    }

    fn bytes(&mut self, bound: u32) -> Vec<u8> {
        let length = self.below(bound);
        (0..length).map(|_| self.next().to_le_bytes()[0]).collect()
    }
}
