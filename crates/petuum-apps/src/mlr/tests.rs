//! Training on the in-memory cluster, which shows the least that the service promises.

use super::*;
use crate::counter::Counter;
use crate::data::{Dense, Examples, Features, Files, Options, Partition, Shape, Sparse};
use crate::report::Recorder;
use crate::testing::{Cluster, run_all, table};
use petuum_client::Table;
use petuum_types::{Clock, ErrorKind, RowId, ValueType, WorkerId};
use std::path::Path;

/// A whole data set of `total` examples in three well-separated classes; the part `worker` of `workers` of it.
fn examples(total: u32, worker: u32, workers: u32, sparse: bool) -> Examples {
    let (width, part) = (6, Partition::of(WorkerId(worker), workers));
    let mut random = fastrand::Rng::with_seed(7);
    let (mut dense, mut csr, mut classes) = (Dense::new(width), Sparse::default(), Vec::new());
    for example in 0..total {
        let class = example % 3;
        let row: Vec<f32> = (0..6).map(|j| random.f32() + if j % 3 == class { 0.8 } else { 0.0 }).collect();
        if part.owns(u64::from(example)) {
            (0..).zip(&row).for_each(|(column, value)| csr.push(column, *value));
            csr.end_row();
            dense.push(row);
            classes.push(class);
        }
    }
    let features = if sparse { Features::Sparse(csr) } else { Features::Dense(dense) };
    let shape = Shape { features: width, labels: vec![0, 1, 2], index_base: 0 };
    let center = if sparse { vec![0.0; width] } else { vec![0.75; width] };
    Examples { shape, total: u64::from(total), center, features, classes }
}

fn settings() -> Settings {
    Settings { epochs: 4, clocks_per_epoch: 5, eta: 1.0, lambda: 1e-3, ..Settings::default() }
}

fn tables(width: usize, staleness: u32) -> Tables {
    let counter = Counter { table: table(2, 1, ValueType::I64, staleness), rows: vec![RowId(3), RowId(8)] };
    Tables { weights: table(1, width, ValueType::F32, staleness), counter: Some(counter) }
}

fn model(cluster: &Cluster, table: &Table, shape: &Shape) -> Weights {
    let mut weights = Weights::zeros(shape.classes(), shape.features);
    for class in 0..shape.classes() {
        let row = cluster.row(table, RowId(class as u64));
        weights.row_mut(class).copy_from_slice(row.as_f32().unwrap());
    }
    weights
}

/// Trains with these parts and returns the model and what each thread came to.
fn train(cluster: &Cluster, tables: &Tables, parts: &[Examples], threads: u32) -> (Weights, Vec<Summary>) {
    let runs = (0..).zip(parts).flat_map(|(w, part)| (0..threads).map(move |t| (w, t, part)));
    let futures = runs.map(|(w, t, part)| {
        let mut worker = cluster.worker(w, t);
        async move { run(&mut worker, tables, part, &settings(), &mut Recorder::default()).await.unwrap() }
    });
    let summaries = run_all(futures.collect());
    (model(cluster, &tables.weights, &parts[0].shape), summaries)
}

fn parts(workers: u32) -> Vec<Examples> {
    (0..workers).map(|worker| examples(90, worker, workers, false)).collect()
}

#[expect(clippy::cast_possible_truncation, reason = "a rounded factor is meant")]
fn rounded(factor: f64) -> f32 {
    factor as f32
}

/// The same steps on one machine: in each clock every part's step at the same weights, added in worker order.
fn reference(parts: &[Examples], settings: &Settings) -> Weights {
    let shape = &parts[0].shape;
    let mut weights = Weights::zeros(shape.classes(), shape.features);
    let place = |worker| ThreadPlace { worker: WorkerId(worker), thread: 0, threads: 1 };
    for clock in 0..settings.clocks() {
        let mut next = weights.clone();
        for (worker, part) in (0..).zip(parts) {
            let mut cursor = Cursor::new(settings, place(worker), u32::try_from(part.len()).unwrap());
            let mut gradient = Gradient::new(shape.classes(), shape.features);
            gradient.compute(&weights, part, cursor.batch(Clock(clock)));
            let step = f64::from(settings.step(clock / settings.clocks_per_epoch));
            let scale = rounded(-step * settings.clocks_per_epoch as f64 / part.total as f64);
            let decay = rounded(-step * f64::from(settings.lambda) * part.len() as f64 / part.total as f64);
            for class in 0..shape.classes() {
                let (sum, old) = (gradient.sum().row(class), weights.row(class));
                let (residual, mut shift) = (sum[shape.features], 0.0);
                for (column, center) in part.center.iter().enumerate() {
                    let delta = (sum[column] - residual * center) * scale + old[column] * decay;
                    shift += center * delta;
                    next.row_mut(class)[column] += delta;
                }
                next.row_mut(class)[shape.features] += residual * scale - shift;
            }
        }
        weights = next;
    }
    weights
}

#[test]
fn under_bsp_several_workers_equal_one_machine_bit_for_bit() {
    for workers in [1, 3, 4] {
        let parts = parts(workers);
        let (cluster, tables) = (Cluster::new(workers, 1, 0), tables(7, 0));
        let (weights, summaries) = train(&cluster, &tables, &parts, 1);
        assert_eq!(weights, reference(&parts, &settings()));
        assert!(summaries.iter().all(|s| (s.first_clock, s.end_clock) == (Clock(0), Clock(20))));
        assert_eq!(summaries.iter().map(|s| s.examples).sum::<u64>(), 4 * 90);
    }
}

#[test]
fn every_number_of_workers_takes_the_same_steps_up_to_the_order_of_data() {
    // One clock per epoch: each step is over all examples, so only rounding differs.
    let settings = Settings { clocks_per_epoch: 1, ..settings() };
    let (one, many) = (reference(&parts(1), &settings), reference(&parts(4), &settings));
    for class in 0..3 {
        one.row(class).iter().zip(many.row(class)).for_each(|(a, b)| assert!((a - b).abs() < 1e-5, "{a} {b}"));
    }
}

#[test]
fn stale_reads_and_threads_still_learn_and_every_clock_counts() {
    for (workers, threads, staleness) in [(1, 1, 0), (4, 1, 2), (2, 2, 2)] {
        let parts = parts(workers);
        let (cluster, tables) = (Cluster::new(workers, threads, staleness), tables(7, staleness));
        let (weights, summaries) = train(&cluster, &tables, &parts, threads);
        assert_eq!(summaries.iter().map(|s| s.examples).sum::<u64>(), 4 * 90);
        let tally = evaluate(&weights, &examples(300, 0, 1, false));
        assert!(tally.accuracy() > 0.9, "{workers} workers: {tally:?}");
        assert!(tally.loss() < evaluate(&Weights::zeros(3, 6), &parts[0]).loss());
        let counter = tables.counter.as_ref().unwrap();
        for row in &counter.rows {
            let sum = cluster.row(&counter.table, *row);
            assert_eq!(sum.as_i64().unwrap(), [i64::from(workers) * 20]);
        }
    }
}

#[test]
fn a_restarted_worker_goes_on_as_if_nothing_had_happened() {
    let parts = parts(2);
    let tables = tables(7, 1);
    let undisturbed = train(&Cluster::new(2, 1, 1), &tables, &parts, 1).0;
    let cluster = Cluster::new(2, 1, 1);
    cluster.fail_at(1, 0, 13);
    let futures = (0..).zip(&parts).map(|(w, part)| {
        let (cluster, tables) = (cluster.clone(), &tables);
        async move {
            let mut recorder = Recorder::default();
            let mut worker = cluster.worker(w, 0);
            let first = run(&mut worker, tables, part, &settings(), &mut recorder).await;
            if w == 1 {
                assert!(matches!(first, Err(Error::Service(e)) if e.kind() == ErrorKind::Unavailable));
                let mut worker = cluster.worker(w, 0);
                let summary = run(&mut worker, tables, part, &settings(), &mut recorder).await.unwrap();
                assert_eq!(summary.first_clock, Clock(13));
            }
            assert!(recorder.losses.iter().map(|point| point.clock).eq(0..20));
        }
    });
    run_all(futures.collect());
    assert_eq!(model(&cluster, &tables.weights, &parts[0].shape), undisturbed);
    // After the end there is nothing left to do.
    let (again, summaries) = train(&cluster, &tables, &parts, 1);
    assert_eq!((again, summaries[0].examples), (undisturbed, 0));
}

struct Patient(u32);

impl Observer for Patient {
    fn clock(&mut self, _: ClockReport) {}

    fn keep_waiting(&mut self, _: &petuum_types::Error) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.0 > 0
    }
}

#[test]
fn a_missed_deadline_is_waited_out_without_a_second_update() {
    let (parts, tables) = (parts(1), tables(7, 0));
    for (patience, finishes) in [(9, true), (2, false)] {
        let cluster = Cluster::new(1, 1, 0);
        cluster.miss_deadlines(3);
        let mut worker = cluster.worker(0, 0);
        let mut observer = Patient(patience);
        let result = run_all(vec![run(&mut worker, &tables, &parts[0], &settings(), &mut observer)]).remove(0);
        assert_eq!(result.is_ok(), finishes);
        if finishes {
            assert_eq!(model(&cluster, &tables.weights, &parts[0].shape), reference(&parts, &settings()));
        }
    }
}

#[test]
fn wrong_tables_settings_and_steps_are_named() {
    let parts = parts(1);
    let attempt = |tables: Tables, data: &Examples, settings: Settings| {
        let mut worker = Cluster::new(1, 1, 0).worker(0, 0);
        let mut recorder = Recorder::default();
        run_all(vec![run(&mut worker, &tables, data, &settings, &mut recorder)]).remove(0).unwrap_err()
    };
    let error = attempt(tables(8, 0), &parts[0], settings()).to_string();
    assert_eq!(error, "table table-1: 8 columns of f32; the data needs 7 columns of f32");
    let error = attempt(tables(7, 0), &parts[0], Settings { epochs: 0, ..settings() });
    assert!(matches!(error, Error::Settings(_)), "{error}");
    // Sums of such features are beyond f32.
    let mut huge = parts[0].clone();
    let mut rows = Dense::new(6);
    (0..huge.len()).for_each(|_| rows.push([f32::MAX; 6]));
    huge.features = Features::Dense(rows);
    let error = attempt(tables(7, 0), &huge, settings());
    assert!(matches!(error, Error::Diverged { clock: Clock(0), .. }), "{error}");
}

/// The loss by plain arithmetic in f64.
fn plain_loss(weights: &Weights, examples: &Examples, batch: &[u32]) -> f64 {
    let Features::Dense(dense) = examples.features() else { panic!("dense examples expected") };
    let loss = |example: &u32| {
        let x = dense.row(*example as usize);
        let score = |class| {
            let row = weights.row(class);
            let products = x.iter().zip(row).map(|(x, w)| f64::from(*x) * f64::from(*w));
            products.sum::<f64>() + f64::from(row[x.len()])
        };
        let scores: Vec<f64> = (0..weights.classes()).map(score).collect();
        let total: f64 = scores.iter().map(|score| score.exp()).sum();
        total.ln() - scores[examples.classes()[*example as usize] as usize]
    };
    batch.iter().map(loss).sum()
}

/// Random examples of a shape, and a random model.
fn random(classes: u32, width: usize, count: u32) -> (Examples, Weights) {
    let mut random = fastrand::Rng::with_seed(u64::from(classes) * 1000 + width as u64);
    let mut dense = Dense::new(width);
    (0..count).for_each(|_| dense.push((0..width).map(|_| random.f32() * 2.0 - 1.0)));
    let labels = (0..i64::from(classes)).collect();
    let shape = Shape { features: width, labels, index_base: 0 };
    let of: Vec<u32> = (0..count).map(|_| random.u32(..classes)).collect();
    let mut weights = Weights::zeros(classes as usize, width);
    (0..classes as usize).for_each(|k| weights.row_mut(k).iter_mut().for_each(|w| *w = random.f32() - 0.5));
    (
        Examples {
            shape,
            total: u64::from(count),
            center: vec![0.0; width],
            features: Features::Dense(dense),
            classes: of,
        },
        weights,
    )
}

#[test]
fn the_gradient_is_the_slope_of_the_loss() {
    for (classes, width, count) in [(2, 1, 1), (3, 5, 7), (4, 8, 8), (10, 3, 9), (11, 13, 20)] {
        let (examples, weights) = random(classes, width, count);
        let batch: Vec<u32> = (0..count).collect();
        let mut gradient = Gradient::new(classes as usize, width);
        let tally = gradient.compute(&weights, &examples, &batch);
        assert!((tally.loss_sum - plain_loss(&weights, &examples, &batch)).abs() < 1e-4 * f64::from(count));
        for class in 0..classes as usize {
            for column in 0..=width {
                let at = |delta: f32| {
                    let mut moved = weights.clone();
                    moved.row_mut(class)[column] += delta;
                    plain_loss(&moved, &examples, &batch)
                };
                let slope = (at(1e-2) - at(-1e-2)) / 2e-2;
                let got = f64::from(gradient.sum().row(class)[column]);
                assert!((slope - got).abs() < 2e-3, "class {class} column {column}: {got}, expected {slope}");
            }
        }
    }
}

#[test]
fn sparse_examples_have_the_gradient_of_dense_ones() {
    let (dense, sparse) = (examples(30, 0, 1, false), examples(30, 0, 1, true));
    let (_, weights) = random(3, 6, 1);
    let batch: Vec<u32> = (3..27).collect();
    let [mut a, mut b] = [Gradient::new(3, 6), Gradient::new(3, 6)];
    let (ta, tb) = (a.compute(&weights, &dense, &batch), b.compute(&weights, &sparse, &batch));
    assert_eq!((ta.examples, ta.correct), (tb.examples, tb.correct));
    assert!((ta.loss_sum - tb.loss_sum).abs() < 1e-4);
    for class in 0..3 {
        let pairs = a.sum().row(class).iter().zip(b.sum().row(class));
        pairs.for_each(|(a, b)| assert!((a - b).abs() < 1e-4, "{a} {b}"));
    }
}

#[test]
fn huge_scores_do_not_overflow() {
    let (examples, mut weights) = random(3, 4, 8);
    (0..3).for_each(|k| weights.row_mut(k).iter_mut().for_each(|w| *w *= 1e6));
    let mut gradient = Gradient::new(3, 4);
    let tally = gradient.compute(&weights, &examples, &[0, 1, 2, 3, 4, 5, 6, 7]);
    assert!(tally.loss_sum.is_finite() && gradient.sum().row(0).iter().all(|g| g.is_finite()));
}

#[test]
fn an_empty_batch_is_nothing() {
    let (examples, weights) = random(3, 4, 8);
    let mut gradient = Gradient::new(3, 4);
    gradient.compute(&weights, &examples, &[1]);
    assert_eq!(gradient.compute(&weights, &examples, &[]), Tally::default());
    assert_eq!(gradient.sum(), &Weights::zeros(3, 4));
    assert_eq!((Tally::default().loss(), Tally::default().accuracy()), (0.0, 0.0));
}

/// 5,000 real images to train and 5,000 to test, four workers with the stalest reads that s = 2 allows.
#[test]
fn fashion_mnist_is_learned() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data/fashion-mnist-10k");
    let options = Options::default();
    let files = Files::find(&folder, &options).unwrap();
    let part = |worker| files.train(Partition::of(WorkerId(worker), 4), &options).unwrap();
    let parts: Vec<Examples> = (0..4).map(part).collect();
    assert_eq!(parts.iter().map(Examples::len).collect::<Vec<_>>(), [1250; 4]);
    let test = files.test(Partition::WHOLE, &options, &parts[0].shape).unwrap().unwrap();
    assert_eq!((parts[0].shape.features, parts[0].shape.classes(), test.len()), (784, 10, 5000));
    let (cluster, tables) = (Cluster::new(4, 1, 2), tables(785, 2));
    let settings = Settings { epochs: 6, ..Settings::default() };
    let futures = (0..).zip(&parts).map(|(w, part)| {
        let (mut worker, tables, settings) = (cluster.worker(w, 0), &tables, &settings);
        async move { run(&mut worker, tables, part, settings, &mut Recorder::default()).await.unwrap() }
    });
    run_all(futures.collect());
    let tally = evaluate(&model(&cluster, &tables.weights, &test.shape), &test);
    assert!(tally.accuracy() >= 0.80, "{tally:?}");
}
