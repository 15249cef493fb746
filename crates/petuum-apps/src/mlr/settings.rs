//! Settings of softmax regression: how long, how fast, how regular.

use serde::{Deserialize, Serialize};

/// Settings of a run; the same for all its workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Settings {
    /// How often every example is used. `1..=1_000_000`, default 10.
    pub epochs: u64,
    /// Clocks in which every example is used once; a clock's batch is a worker's part divided by this. With fewer, a
    /// step is more exact but there are fewer. `1..=1_000_000`, default 100.
    pub clocks_per_epoch: u64,
    /// The first epoch's step size on the mean gradient. Above 0, finite; default 2, for pixels of `0..=1`.
    /// With the default decay this reaches 0.84 on Fashion-MNIST in 10 epochs under s = 2, every read as stale as
    /// allowed. Too large diverges ([`super::Error::Diverged`]), too small learns slowly.
    pub eta: f32,
    /// How the step size falls from epoch to epoch.
    pub schedule: Schedule,
    /// L2 regularisation: the loss has `lambda / 2` times the squared weights, biases left out. At least 0, with
    /// `eta * lambda < 1`; default 1e-5.
    pub lambda: f32,
    /// Seed of the data order. Default 1.
    pub seed: u64,
}

/// How the step size falls.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// `eta * factor^epoch`, with a factor in `(0, 1]`; 1 keeps it constant.
    Decay(f32),
    /// `eta / sqrt(1 + epoch)`.
    InverseRoot,
}

impl Default for Settings {
    fn default() -> Self {
        Self { epochs: 10, clocks_per_epoch: 100, eta: 2.0, schedule: Schedule::Decay(0.8), lambda: 1e-5, seed: 1 }
    }
}

/// A setting out of bounds.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{name} = {got}; expected {expected}")]
pub struct SettingsError {
    /// The setting.
    pub name: &'static str,
    /// Its value.
    pub got: String,
    /// Its bounds.
    pub expected: &'static str,
}

const COUNT_MAX: u64 = 1_000_000;

impl Settings {
    /// Checks bounds and relations.
    ///
    /// # Errors
    /// Names the setting, its value and its bounds.
    pub fn validate(&self) -> Result<(), SettingsError> {
        let check = |holds, name, got: &dyn std::fmt::Display, expected| {
            if holds { Ok(()) } else { Err(SettingsError { name, got: got.to_string(), expected }) }
        };
        let count = 1..=COUNT_MAX;
        check(count.contains(&self.epochs), "epochs", &self.epochs, "1 to 1,000,000")?;
        check(count.contains(&self.clocks_per_epoch), "clocks-per-epoch", &self.clocks_per_epoch, "1 to 1,000,000")?;
        check(self.eta.is_finite() && self.eta > 0.0, "eta", &self.eta, "a finite step above 0")?;
        let regular = self.lambda >= 0.0 && self.eta * self.lambda < 1.0;
        check(regular, "lambda", &self.lambda, "at least 0 and eta * lambda < 1")?;
        match self.schedule {
            Schedule::Decay(factor) => {
                check(factor > 0.0 && factor <= 1.0, "decay", &factor, "a factor above 0 and at most 1")
            }
            Schedule::InverseRoot => Ok(()),
        }
    }

    /// Clocks of the whole run.
    #[must_use]
    pub const fn clocks(&self) -> u64 {
        self.epochs * self.clocks_per_epoch
    }

    /// The step size in an epoch. Powers are multiplied out here, because the standard library's may differ in their
    /// last bits between platforms.
    #[must_use]
    pub fn step(&self, epoch: u64) -> f32 {
        match self.schedule {
            Schedule::Decay(factor) => {
                let (mut step, mut square, mut rest) = (self.eta, factor, epoch);
                while rest > 0 {
                    if rest % 2 == 1 {
                        step *= square;
                    }
                    square *= square;
                    rest /= 2;
                }
                step
            }
            #[expect(clippy::cast_precision_loss, reason = "epochs are at most 1,000,000")]
            Schedule::InverseRoot => self.eta / (1.0 + epoch as f32).sqrt(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_checked_and_named() {
        Settings::default().validate().unwrap();
        let wrong = [
            (Settings { epochs: 0, ..Settings::default() }, "epochs"),
            (Settings { clocks_per_epoch: COUNT_MAX + 1, ..Settings::default() }, "clocks-per-epoch"),
            (Settings { eta: f32::NAN, ..Settings::default() }, "eta"),
            (Settings { eta: 0.0, ..Settings::default() }, "eta"),
            (Settings { lambda: -1.0, ..Settings::default() }, "lambda"),
            (Settings { lambda: 10.0, ..Settings::default() }, "lambda"),
            (Settings { lambda: f32::NAN, ..Settings::default() }, "lambda"),
            (Settings { schedule: Schedule::Decay(1.5), ..Settings::default() }, "decay"),
            (Settings { schedule: Schedule::Decay(f32::NAN), ..Settings::default() }, "decay"),
        ];
        for (settings, name) in wrong {
            assert_eq!(settings.validate().unwrap_err().name, name);
        }
    }

    #[test]
    fn steps_fall() {
        let settings = Settings { eta: 1.0, schedule: Schedule::Decay(0.5), ..Settings::default() };
        assert_eq!([0, 1, 3].map(|epoch| settings.step(epoch)), [1.0, 0.5, 0.125]);
        let settings = Settings { schedule: Schedule::InverseRoot, ..settings };
        assert_eq!([0, 3].map(|epoch| settings.step(epoch)), [1.0, 0.5]);
    }
}
