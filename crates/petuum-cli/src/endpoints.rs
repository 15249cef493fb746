//! Where the cluster is: `--endpoints` or `PETUUM_ENDPOINTS`.

use crate::output::Failure;
use clap::builder::RangedU64ValueParser;
use clap::value_parser;
use petuum_client::{Client, Options};
use std::time::Duration;

/// What a flag in whole seconds takes: up to a day.
pub(crate) fn seconds() -> RangedU64ValueParser {
    value_parser!(u64).range(1..=86_400)
}

/// The cluster to talk to.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Endpoints {
    /// Nodes of the cluster, `host:port,…`; one is enough
    #[arg(long, global = true, env = "PETUUM_ENDPOINTS", value_delimiter = ',', value_name = "HOST:PORT,…")]
    pub(crate) endpoints: Vec<String>,
    /// How long to wait for an answer, in seconds
    #[arg(long, global = true, default_value_t = 30, value_parser = seconds(), value_name = "SECONDS")]
    pub(crate) deadline: u64,
}

impl Endpoints {
    /// Connects.
    pub(crate) async fn connect(&self) -> Result<Client, Failure> {
        if self.endpoints.is_empty() {
            return Err(Failure::new(
                "no endpoints: give --endpoints host:port or set PETUUM_ENDPOINTS (`petuum local` prints the line)",
            ));
        }
        let options = Options { deadline: Duration::from_secs(self.deadline), ..Options::default() };
        Ok(Client::connect(&self.endpoints, options).await?)
    }
}
