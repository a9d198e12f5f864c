//! A `flo` call in a manifest or a document, and the resulting configuration of a node.

use crate::arguments::Arguments;
use crate::commands::Command;
use crate::output::Format;
use crate::session::TOKEN_VARIABLE;
use clap::{CommandFactory, Parser};
use flotilla_server::ServerConfig;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{LazyLock, Mutex, PoisonError};
use tempfile::NamedTempFile;

/// A `flo` call and its environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Launch {
    /// The arguments of `flo`.
    pub(super) arguments: Vec<String>,
    /// The environment variables.
    pub(super) variables: BTreeMap<String, String>,
    /// The files that the call can read: their text by path.
    pub(super) files: BTreeMap<String, String>,
}

impl Launch {
    /// The configuration that `flo server` derives; variables are turned into their flags. Each
    /// launch is tried only once, however many tests ask.
    ///
    /// # Errors
    /// A sentence, if flo refuses it.
    pub(super) fn config(&self) -> Result<ServerConfig, String> {
        let mut tried = TRIED.lock().unwrap_or_else(PoisonError::into_inner);
        let tried = tried.entry(self.clone());
        tried.or_insert_with(|| self.try_config()).clone()
    }

    /// Whether flo accepts the call, whatever its command.
    ///
    /// # Errors
    /// A sentence, if flo refuses it.
    pub(super) fn check(&self) -> Result<(), String> {
        let mut checked = CHECKED.lock().unwrap_or_else(PoisonError::into_inner);
        let checked = checked.entry(self.clone());
        checked.or_insert_with(|| self.try_words()).clone()
    }

    fn try_words(&self) -> Result<(), String> {
        let mut words = vec!["flo".to_owned()];
        words.extend(self.arguments.iter().cloned());
        words.extend(self.flags()?);
        parse(&words).map(drop)
    }

    fn try_config(&self) -> Result<ServerConfig, String> {
        let mut files = Vec::new();
        let mut words = vec!["flo".to_owned()];
        for argument in &self.arguments {
            words.push(match self.files.get(argument) {
                Some(text) => {
                    let file = written(text);
                    let path = file.path().display().to_string();
                    files.push(file);
                    path
                }
                None => argument.clone(),
            });
        }
        words.extend(self.flags()?);
        let arguments = parse(&words)?;
        let Command::Server(server) = arguments.command else {
            return Err("expected `flo server`, but the call is another one".to_owned());
        };
        let config = server
            .config()
            .map_err(|failure| failure.render(Format::Text))?;
        config.validate().map_err(|error| error.to_string())?;
        Ok(config)
    }

    /// The flags of the variables.
    fn flags(&self) -> Result<Vec<String>, String> {
        let own = match self.arguments.first().map(String::as_str) {
            Some("server") => SERVER_FLAGS.clone(),
            _ => flags_of(&self.arguments),
        };
        let ours = self.variables.iter();
        let ours = ours.filter(|(name, _)| name.starts_with("FLO_"));
        let mut flags = Vec::new();
        for (name, value) in ours {
            match own.get(name) {
                Some(flag) => flags.push(format!("--{flag}={value}")),
                // The image sets variables of the server, which other commands ignore.
                None if SERVER_FLAGS.contains_key(name) => {}
                // The token itself is never an argument.
                None if name == TOKEN_VARIABLE => {}
                None => {
                    return Err(format!(
                        "expected a variable that flo reads, but found {name}"
                    ));
                }
            }
        }
        Ok(flags)
    }
}

/// Whether `flo` accepts these words.
///
/// # Errors
/// What is wrong with them.
pub(super) fn parse(words: &[String]) -> Result<Arguments, String> {
    Arguments::try_parse_from(words).map_err(|error| error.to_string())
}

/// The results of the launches so far.
static TRIED: Mutex<BTreeMap<Launch, Result<ServerConfig, String>>> = Mutex::new(BTreeMap::new());

/// The launches that flo has accepted so far.
static CHECKED: Mutex<BTreeMap<Launch, Result<(), String>>> = Mutex::new(BTreeMap::new());

/// The flags of `flo server` by their variables.
static SERVER_FLAGS: LazyLock<BTreeMap<String, String>> =
    LazyLock::new(|| flags_of(&["server".to_owned()]));

/// The flags of the called command by their variables.
fn flags_of(call: &[String]) -> BTreeMap<String, String> {
    let root = Arguments::command();
    let below = call.iter().scan(&root, |verb, word| {
        *verb = verb.find_subcommand(word)?;
        Some(*verb)
    });
    let verb = below.last().unwrap_or(&root);
    let flags = root.get_arguments().chain(verb.get_arguments());
    let named = flags.filter_map(|flag| {
        Some((
            flag.get_env()?.to_str()?.to_owned(),
            flag.get_long()?.to_owned(),
        ))
    });
    named.collect()
}

fn written(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().expect("a temporary file");
    file.write_all(text.as_bytes()).expect("room for it");
    file
}

#[test]
fn flags_variables_and_the_file_are_one_configuration() {
    let launch = Launch {
        arguments: ["server", "--config", "/etc/a.toml", "--node-id", "2"]
            .map(str::to_owned)
            .to_vec(),
        variables: [("FLO_INSECURE", "true"), ("FLO_PEERS", "2=a:1")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        files: [("/etc/a.toml".to_owned(), "data_dir = \"d\"\n".to_owned())].into(),
    };
    let config = launch.config().expect("a configuration");
    assert_eq!((config.node_id, config.insecure), (2, true));
    assert_eq!(config.data_dir.to_str(), Some("d"));
    assert_eq!(config.peers[0].address, "a:1");
}

#[test]
fn a_call_of_another_verb_has_the_variables_of_that_verb() {
    let launch = |name: &str| Launch {
        arguments: ["cluster", "status"].map(str::to_owned).to_vec(),
        variables: [(name.to_owned(), "a:1".to_owned())].into(),
        ..Launch::default()
    };
    assert_eq!(launch("FLO_ENDPOINT").check(), Ok(()));
    // A variable of the server: ignored, but not an error.
    assert_eq!(launch("FLO_LISTEN").check(), Ok(()));
    assert!(launch("FLO_ENDPOINTS").check().is_err());
}
