//! The training loop of one thread, and the evaluation of a model.

use super::{Cursor, Gradient, Settings, SettingsError, Tally, ThreadPlace, Weights};
use crate::counter::Counter;
use crate::data::Examples;
use petuum_client::{Deltas, Table, Worker};
use petuum_types::{Clock, ErrorKind, RowId, ValueType};

/// The tables of a run.
#[derive(Clone, Debug)]
pub struct Tables {
    /// f32, one row per class (row ids from 0), as wide as the features and a bias, initially zero; its staleness is
    /// the run's.
    pub weights: Table,
    /// If given, thread 0 of each worker adds 1 to each of these rows in every clock.
    pub counter: Option<Counter>,
}

/// What a thread did in one clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockReport {
    /// The clock.
    pub clock: Clock,
    /// Mean training loss over its batch, at the weights it read, without regularisation.
    pub loss: f64,
    /// Share of the batch that those weights put into the right class.
    pub accuracy: f64,
    /// Examples of the batch; if 0, loss and accuracy are 0 and mean nothing.
    pub examples: u64,
}

/// Watches a run.
pub trait Observer: Send {
    /// A clock has been computed and ended; it is queued for commit.
    fn clock(&mut self, report: ClockReport);

    /// A wait has reached its deadline ([`ErrorKind::DeadlineExceeded`]); nothing is lost. Whether to go on waiting;
    /// by default not.
    fn keep_waiting(&mut self, error: &petuum_types::Error) -> bool {
        let _ = error;
        false
    }
}

/// What a run came to, for this thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The clock it started at; above 0 after a restart.
    pub first_clock: Clock,
    /// The clock after its last.
    pub end_clock: Clock,
    /// Examples it used, repeats counted.
    pub examples: u64,
}

/// Why a run ended early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting is out of bounds.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The table does not fit the data.
    #[error("table {table}: {got}; the data needs {expected}")]
    Table {
        /// The table's name.
        table: String,
        /// What the table has.
        got: String,
        /// What the data needs.
        expected: String,
    },
    /// Weights or loss are no longer finite.
    #[error("diverged at {clock}: the {what} is not finite; use a smaller eta (now {eta}) or scale the features")]
    Diverged {
        /// Where.
        clock: Clock,
        /// What is not finite.
        what: &'static str,
        /// The step size setting.
        eta: f32,
    },
    /// The service refused or could not be reached.
    #[error(transparent)]
    Service(#[from] petuum_types::Error),
}

/// Makes a call again as long as it only ran out of time and the observer wants to go on; the [`Worker`] contract says
/// that such a call may be repeated.
macro_rules! patiently {
    ($observer:expr, $call:expr) => {
        loop {
            match $call.await {
                Err(error) if error.kind() == ErrorKind::DeadlineExceeded && $observer.keep_waiting(&error) => {}
                result => break result,
            }
        }
    };
}

/// Trains until the settings' last clock, from the worker's own clock on, then waits until every shard has ticked every
/// clock. `data` is the worker's part, shared by its threads. Called again after a restart it goes on; called after
/// the end it returns at once.
///
/// # Errors
/// [`Error`]; the worker is left at the clock that failed.
pub async fn run<W: Worker, O: Observer>(
    worker: &mut W,
    tables: &Tables,
    data: &Examples,
    settings: &Settings,
    observer: &mut O,
) -> Result<Summary, Error> {
    settings.validate()?;
    check_tables(tables, data)?;
    assert_eq!(data.center.len(), data.shape.features, "readers give every feature a centre");
    let mut thread = Thread::new(worker, data, settings);
    let first_clock = worker.now();
    let mut examples = 0;
    let mut clock = first_clock;
    while clock.0 < settings.clocks() {
        patiently!(observer, thread.read(worker, tables))?;
        let tally = thread.compute(clock)?;
        thread.write(worker, tables)?;
        clock = patiently!(observer, worker.clock())?;
        examples += tally.examples;
        let report = ClockReport {
            clock: Clock(clock.0 - 1),
            loss: tally.loss(),
            accuracy: tally.accuracy(),
            examples: tally.examples,
        };
        observer.clock(report);
    }
    patiently!(observer, worker.flush())?;
    Ok(Summary { first_clock, end_clock: clock, examples })
}

/// Reads the model as fresh as the worker's clock and the table's staleness ask for.
///
/// # Errors
/// As [`Worker::get_many`].
pub async fn read_weights<W: Worker>(
    worker: &mut W,
    tables: &Tables,
    weights: &mut Weights,
) -> Result<(), petuum_types::Error> {
    let rows: Vec<RowId> = (0..weights.classes() as u64).map(RowId).collect();
    let values = worker.get_many(&tables.weights, &rows).await?;
    if values.len() != rows.len() {
        let message = format!("{} rows read; expected the {} asked for", values.len(), rows.len());
        return Err(petuum_types::Error::new(ErrorKind::Internal, message));
    }
    for (class, values) in values.iter().enumerate() {
        let row = weights.row_mut(class);
        match values.as_f32() {
            Some(values) if values.len() == row.len() => row.copy_from_slice(values),
            _ => {
                let got = format!("{} {} values", values.len(), values.value_type());
                let message = format!("row {class} has {got}; expected {} f32 values", row.len());
                return Err(petuum_types::Error::new(ErrorKind::Internal, message));
            }
        }
    }
    Ok(())
}

/// Loss and accuracy of a model on examples.
///
/// # Panics
/// Unless both have one shape.
#[must_use]
pub fn evaluate(weights: &Weights, examples: &Examples) -> Tally {
    let all: Vec<u32> = (0..).take(examples.len()).collect();
    Gradient::new(weights.classes(), weights.features()).evaluate(weights, examples, &all)
}

fn check_tables(tables: &Tables, data: &Examples) -> Result<(), Error> {
    let width = data.shape.features + 1;
    check_table(&tables.weights, ValueType::F32, width)?;
    tables.counter.as_ref().map_or(Ok(()), |counter| check_table(&counter.table, ValueType::I64, 1))
}

fn check_table(table: &Table, value_type: ValueType, width: usize) -> Result<(), Error> {
    let schema = table.schema();
    if schema.value_type == value_type && schema.width as usize == width {
        return Ok(());
    }
    let describe = |width: usize, value_type: ValueType| format!("{width} columns of {value_type}");
    Err(Error::Table {
        table: schema.name.clone(),
        got: describe(schema.width as usize, schema.value_type),
        expected: describe(width, value_type),
    })
}

/// One thread's buffers; nothing here outlives a clock but the data's order, which the clock determines.
struct Thread<'a> {
    data: &'a Examples,
    settings: &'a Settings,
    cursor: Cursor,
    counts: bool,
    weights: Weights,
    gradient: Gradient,
    /// The step of one row.
    step: Weights,
}

impl<'a> Thread<'a> {
    fn new<W: Worker>(worker: &W, data: &'a Examples, settings: &'a Settings) -> Self {
        let place = ThreadPlace { worker: worker.id(), thread: worker.thread(), threads: worker.threads() };
        let part = u32::try_from(data.len()).expect("readers keep at most EXAMPLES_MAX examples");
        let (classes, features) = (data.shape.classes(), data.shape.features);
        Self {
            data,
            settings,
            cursor: Cursor::new(settings, place, part),
            counts: place.thread == 0,
            weights: Weights::zeros(classes, features),
            gradient: Gradient::new(classes, features),
            step: Weights::zeros(classes, features),
        }
    }

    async fn read<W: Worker>(&mut self, worker: &mut W, tables: &Tables) -> Result<(), petuum_types::Error> {
        read_weights(worker, tables, &mut self.weights).await
    }

    /// Computes this thread's share of the clock's step.
    fn compute(&mut self, clock: Clock) -> Result<Tally, Error> {
        let settings = self.settings;
        let diverged = |what| Error::Diverged { clock, what, eta: settings.eta };
        let batch = self.cursor.batch(clock);
        let tally = self.gradient.compute(&self.weights, self.data, batch);
        if !tally.loss_sum.is_finite() {
            return Err(diverged("loss"));
        }
        let (scale, decay) = factors(settings, clock, self.cursor.len(), self.data.total);
        let features = self.weights.features();
        for class in 0..self.weights.classes() {
            let (sum, weights) = (self.gradient.sum().row(class), self.weights.row(class));
            let step = self.step.row_mut(class);
            let residual = sum[features];
            let mut shift = 0.0;
            for column in 0..features {
                let center = self.data.center[column];
                let delta = (sum[column] - residual * center) * scale + weights[column] * decay;
                shift += center * delta;
                step[column] = delta;
            }
            step[features] = residual * scale - shift;
            if !step.iter().all(|delta| delta.is_finite()) {
                return Err(diverged("step"));
            }
        }
        Ok(tally)
    }

    fn write<W: Worker>(&self, worker: &mut W, tables: &Tables) -> Result<(), petuum_types::Error> {
        for (class, row) in (0..self.step.classes()).zip((0..).map(RowId)) {
            worker.inc_dense(&tables.weights, row, 0, Deltas::F32(self.step.row(class)))?;
        }
        if let Some(counter) = tables.counter.as_ref().filter(|_| self.counts) {
            counter.rows.iter().try_for_each(|row| worker.inc(&counter.table, *row, 0, 1i64))?;
        }
        Ok(())
    }
}

/// What a sum of gradients and a weight are multiplied by: -step / B and -step * lambda * share.
#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "a rounded factor is meant")]
fn factors(settings: &Settings, clock: Clock, own: u32, total: u64) -> (f32, f32) {
    let step = f64::from(settings.step(clock.0 / settings.clocks_per_epoch));
    let total = total.max(1) as f64;
    let scale = -step * settings.clocks_per_epoch as f64 / total;
    let decay = -step * f64::from(settings.lambda) * f64::from(own) / total;
    (scale as f32, decay as f32)
}
