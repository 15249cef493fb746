//! `petuum ctl table`: a job's tables.

use crate::initial::InitialValues;
use crate::listing::{replicas, rows};
use crate::output::{Failure, line, note};
use clap::{Subcommand, ValueEnum};
use petuum_client::{Client, TableDefinition};
use petuum_types::{NonFinite, Staleness, ValueType};
use std::collections::BTreeMap;

/// What to do with tables.
#[derive(Debug, Subcommand)]
pub(crate) enum TableCommand {
    /// Create a table; returns when every shard has it
    Create(Create),
    /// A job's tables, with how many values each has left out because they were NaN or infinite
    List {
        /// The job
        job: String,
    },
    /// Drop a table and all its rows; returns when every shard has
    Drop {
        /// The job
        job: String,
        /// The table's name
        name: String,
    },
}

/// A table to be created.
#[derive(Debug, clap::Args)]
pub(crate) struct Create {
    /// The job
    job: String,
    /// The table's name
    name: String,
    /// Columns of every row, 1 to 1000000
    #[arg(long)]
    width: u32,
    /// Type of the values
    #[arg(long = "type", value_enum, default_value_t = Type::F32)]
    value_type: Type,
    /// Staleness of reads; 0 is BSP
    #[arg(long, default_value_t = 0)]
    staleness: u32,
    /// What a row holds that nobody has changed: zero, constant=X, uniform=LOW,HIGH or normal=MEAN,DEVIATION
    #[arg(long, default_value = "zero")]
    initial: InitialValues,
    /// Seed of the initial values, if they are drawn
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// What to do with NaN and infinite updates
    #[arg(long, value_enum, default_value_t = Policy::Reject)]
    non_finite: Policy,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Type {
    F32,
    I64,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Policy {
    Reject,
    Drop,
    Accept,
}

impl Create {
    fn definition(&self) -> Result<TableDefinition, Failure> {
        let value_type = match self.value_type {
            Type::F32 => ValueType::F32,
            Type::I64 => ValueType::I64,
        };
        Ok(TableDefinition {
            name: self.name.clone(),
            width: self.width,
            value_type,
            staleness: Staleness(self.staleness),
            initial: self.initial.of_type(value_type).map_err(Failure::new)?,
            seed: self.seed,
            non_finite: match self.non_finite {
                Policy::Reject => NonFinite::Reject,
                Policy::Drop => NonFinite::Drop,
                Policy::Accept => NonFinite::Accept,
            },
        })
    }
}

impl TableCommand {
    /// Carries it out.
    pub(crate) async fn run(self, client: &Client) -> Result<(), Failure> {
        match self {
            Self::Create(create) => {
                let definition = create.definition()?;
                let table = client.job(&create.job).await?.create_table(&definition).await?;
                line(format_args!("{} {:?}", table.schema().id, definition.name));
                Ok(())
            }
            Self::List { job } => list(client, &job).await,
            Self::Drop { job, name } => {
                let table = client.job(&job).await?.drop_table(&name).await?;
                line(format_args!("dropped {table} {name:?}"));
                Ok(())
            }
        }
    }
}

async fn list(client: &Client, job: &str) -> Result<(), Failure> {
    let mut table = rows(&["ID", "NAME", "WIDTH", "TYPE", "STALENESS", "NON-FINITE", "LEFT OUT"]);
    let schemas = client.job(job).await?.tables().await?;
    let left_out = left_out(client).await;
    for schema in schemas {
        table.add_row(vec![
            schema.id.0.to_string(),
            schema.name,
            schema.width.to_string(),
            schema.value_type.to_string(),
            schema.staleness.0.to_string(),
            format!("{:?}", schema.non_finite).to_lowercase(),
            left_out.get(&schema.id.0).copied().unwrap_or(0).to_string(),
        ]);
    }
    line(table);
    Ok(())
}

/// Values each table has left out: of each shard what its furthest replica has counted, all shards together.
async fn left_out(client: &Client) -> BTreeMap<u32, u64> {
    let mut counted: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for (node, address) in &client.map().nodes {
        match replicas(address).await {
            Ok(replicas) => {
                for (group, count) in replicas.iter().flat_map(|r| r.left_out.iter().map(|count| (r.group, count))) {
                    // The count is replicated and only grows.
                    let most = counted.entry((group, count.table)).or_default();
                    *most = count.values.max(*most);
                }
            }
            Err(failure) => note(format_args!("{node} at {address} is not counted in LEFT OUT: {failure}")),
        }
    }
    let mut sums = BTreeMap::new();
    for ((_, table), count) in counted {
        *sums.entry(table).or_default() += count;
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use petuum_types::Initial;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(subcommand)]
        command: TableCommand,
    }

    fn created(flags: &[&str]) -> Result<TableDefinition, String> {
        let line = ["table", "create", "job", "name", "--width", "3"].iter().chain(flags);
        match Line::try_parse_from(line).map_err(|error| error.to_string())?.command {
            TableCommand::Create(create) => create.definition().map_err(|failure| failure.to_string()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn initial_values_and_seed_come_from_their_flags() {
        assert_eq!(created(&[]).unwrap(), TableDefinition::f32("name", 3, 0));
        let drawn = created(&["--type", "i64", "--initial", "uniform=-4,9", "--seed", "77"]).unwrap();
        let initial = Initial::Uniform { low: (-4i64).cast_unsigned(), high: 9 };
        assert_eq!(drawn, TableDefinition { initial, seed: 77, ..TableDefinition::i64("name", 3, 0) });
        assert!(created(&["--initial", "gamma=1"]).unwrap_err().contains("normal=MEAN,DEVIATION"));
        assert!(created(&["--type", "i64", "--initial", "constant=0.5"]).unwrap_err().contains("i64"));
    }
}
