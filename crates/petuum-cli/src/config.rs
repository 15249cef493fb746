//! A node's configuration: defaults, then a TOML file, then `PETUUM_…` variables, then flags.

use crate::output::Failure;
use figment::Figment;
use figment::error::Kind;
use figment::providers::{Env, Format, Serialized, Toml};
use petuum_server::NodeSettings;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What `petuum serve` reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Config {
    /// The data directory; one per node, never copied.
    pub(crate) data: PathBuf,
    /// Where to listen, `host:port`. Loopback only in this version.
    pub(crate) listen: String,
    /// The address others reach this node at; by default the one it listens on.
    pub(crate) advertise: Option<String>,
    /// The node's own settings.
    pub(crate) node: NodeSettings,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            data: PathBuf::from("petuum-data"),
            listen: "127.0.0.1:7070".to_owned(),
            advertise: None,
            node: NodeSettings::default(),
        }
    }
}

/// Flags that were given; the others leave the file's and the environment's values alone.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Flags {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) listen: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) advertise: Option<String>,
}

/// Reads and checks a configuration.
///
/// # Errors
/// One line: which key, what is wrong with it, and for an unknown key the nearest known one.
pub(crate) fn load(file: Option<&Path>, flags: &Flags) -> Result<Config, Failure> {
    let mut figment = Figment::from(Serialized::defaults(Config::default()));
    if let Some(file) = file {
        if !file.is_file() {
            return Err(Failure::new(format_args!("no configuration file at {}", file.display())));
        }
        figment = figment.merge(Toml::file_exact(file));
    }
    // PETUUM_NODE__HEARTBEAT_MS is node.heartbeat-ms. PETUUM_LOG is the logger's, PETUUM_ENDPOINTS a client's.
    let env = Env::prefixed("PETUUM_")
        .ignore(&["LOG", "ENDPOINTS"])
        .map(|key| key.as_str().replace("__", ".").replace('_', "-").into());
    figment = figment.merge(env).merge(Serialized::defaults(flags));
    let config: Config = figment.extract().map_err(|error| explain(&error))?;
    config.node.validate().map_err(Failure::new)?;
    Ok(config)
}

fn explain(error: &figment::Error) -> Failure {
    let first = error.clone().into_iter().next().unwrap_or_else(|| error.clone());
    let source = first.metadata.as_ref().and_then(|m| m.source.as_ref().map(ToString::to_string));
    let place = source.map(|s| format!(" in {s}")).unwrap_or_default();
    match &first.kind {
        Kind::UnknownField(name, _) => {
            let full = [&first.path[..], std::slice::from_ref(name)].concat().join(".");
            let hint = nearest(&full).map(|n| format!("; did you mean {n:?}?")).unwrap_or_default();
            Failure::new(format_args!("unknown key {name:?}{place}{hint}"))
        }
        _ => Failure::new(format_args!("configuration{place}: {first}")),
    }
}

/// The known key, with its table, that is most like an unknown one.
fn nearest(unknown: &str) -> Option<String> {
    let known = keys("", &Figment::from(Serialized::defaults(Config::default())).extract().ok()?);
    known.into_iter().max_by(|a, b| likeness(a, unknown).total_cmp(&likeness(b, unknown)))
}

/// A key that lacks only its table is as good as right.
fn likeness(known: &str, unknown: &str) -> f64 {
    let last = known.rsplit('.').next().unwrap_or(known);
    strsim::jaro_winkler(known, unknown).max(strsim::jaro_winkler(last, unknown))
}

fn keys(prefix: &str, table: &figment::value::Dict) -> Vec<String> {
    let mut all = Vec::new();
    for (key, value) in table {
        match value {
            figment::value::Value::Dict(_, inner) => all.extend(keys(&format!("{prefix}{key}."), inner)),
            _ => all.push(format!("{prefix}{key}")),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load_text(text: &str) -> Result<Config, Failure> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("petuum.toml");
        std::fs::write(&file, text).unwrap();
        load(Some(&file), &Flags::default())
    }

    #[test]
    fn a_file_changes_what_it_names() {
        let config = load_text("listen = \"127.0.0.1:1\"\n[node]\nheartbeat-ms = 50\n").unwrap();
        assert_eq!((config.listen.as_str(), config.node.heartbeat_ms), ("127.0.0.1:1", 50));
        assert_eq!(config.node.election_min_ms, NodeSettings::default().election_min_ms);
    }

    #[test]
    fn an_unknown_key_names_the_nearest() {
        let failure = load_text("[node]\nheart-beat-ms = 50\n").unwrap_err().to_string();
        assert!(failure.contains("\"heart-beat-ms\"") && failure.contains("\"node.heartbeat-ms\""), "{failure}");
        // Given at the top instead of in its table.
        let failure = load_text("election-max-ms = 50\n").unwrap_err().to_string();
        assert!(failure.contains("did you mean \"node.election-max-ms\"?"), "{failure}");
        let failure = load_text("listne = \"x\"\n").unwrap_err().to_string();
        assert!(failure.contains("\"listen\""), "{failure}");
    }

    #[test]
    fn values_out_of_bounds_and_of_wrong_type_are_named() {
        let failure = load_text("[node]\nheartbeat-ms = 1\n").unwrap_err().to_string();
        assert!(failure.contains("heartbeat-ms = 1; expected 10 to 5000"), "{failure}");
        let failure = load_text("[node]\nheartbeat-ms = \"soon\"\n").unwrap_err().to_string();
        assert!(failure.contains("heartbeat-ms") || failure.contains("expected"), "{failure}");
    }

    #[test]
    fn flags_win() {
        let flags = Flags { listen: Some("127.0.0.1:2".into()), ..Flags::default() };
        assert_eq!(load(None, &flags).unwrap().listen, "127.0.0.1:2");
    }
}
