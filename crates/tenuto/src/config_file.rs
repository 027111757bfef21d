//! Options of `serve` from a file and from the environment, put into the command line before it is
//! parsed.
//!
//! ```text
//!   command line      serve a.store --listen 192.168.1.5:80
//!   environment       TENUTO_SERVE_WAIT=2s                    goes before the file
//!   file              listen = "127.0.0.1:80"                 (--listen is given already)
//!                     survive-loss = true
//!          ─────▶     serve --survive-loss --wait=2s a.store --listen 192.168.1.5:80
//! ```
//!
//! Each option of the command is a key, so that there is one list of options, one parser of their
//! values and one text for each error. Only the origin of a wrong value is added to its error.

use crate::args::RootCommand;
use crate::args::viewing::ServeArgs;
use crate::cli;
use crate::failure::Failure;
use clap::Arg;
use serde_json::json;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::path::Path;
use toml::Value;

/// A command line with its settings from elsewhere.
#[derive(Debug, Default)]
pub(crate) struct ExpandedLine {
    /// The words to parse, the program's name first.
    pub(crate) words: Vec<OsString>,
    settings: Vec<OptionSetting>,
}

/// An option that the command line does not have.
#[derive(Debug)]
struct OptionSetting {
    /// The option without its dashes.
    key: String,
    /// `None` for a switch.
    value: Option<OsString>,
    /// The file, or the environment variable.
    origin: String,
}

impl ExpandedLine {
    /// Adds to `words`, the program's name first, what the environment and the file of `--config`
    /// set for `serve`. Other commands have neither.
    pub(crate) fn new(
        words: Vec<OsString>,
        environment: impl Iterator<Item = (OsString, OsString)>,
    ) -> Result<Self, Failure> {
        let of_serve = words.get(1).is_some_and(|word| word == COMMAND);
        // A page of help must not fail because of a file.
        if !of_serve || words.iter().any(|word| HELP.iter().any(|help| word == help)) {
            return Ok(Self { words, settings: Vec::new() });
        }
        let options = SettableOptions::new();
        let mut settings = options.of_environment(environment)?;
        let given = |key: &str| words.iter().any(|word| option_name(word) == Some(key));
        settings.retain(|setting| !given(&setting.key));
        let mut stores = Vec::new();
        if let Some(path) = config_path(&words, &settings) {
            let mut of_file = options.of_file(Path::new(&path), &mut stores)?;
            let set = |key: &str| settings.iter().any(|setting| setting.key == key);
            of_file.retain(|setting| !given(&setting.key) && !set(&setting.key));
            settings.append(&mut of_file);
        }
        let mut expanded = words;
        let before = expanded.split_off(2);
        expanded.extend(settings.iter().map(OptionSetting::word));
        expanded.extend(before);
        if !stores.is_empty() && !expanded.iter().any(|word| word == "--") {
            expanded.push("--".into());
        }
        expanded.extend(stores);
        Ok(Self { words: expanded, settings })
    }

    /// A failure to parse [`Self::words`], with the origin of the option that it is about.
    pub(crate) fn located(&self, failure: Failure) -> Failure {
        let about = |setting: &&OptionSetting| {
            let rest =
                failure.sentence.strip_prefix("--").and_then(|s| s.strip_prefix(&setting.key));
            rest.is_some_and(|rest| rest.starts_with([':', ' ']))
        };
        let Some(setting) = self.settings.iter().find(about) else { return failure };
        Failure { sentence: format!("{}: {}", setting.origin, failure.sentence), ..failure }
    }
}

impl OptionSetting {
    fn word(&self) -> OsString {
        let mut word = OsString::from(format!("--{}", self.key));
        if let Some(value) = &self.value {
            word.push("=");
            word.push(value);
        }
        word
    }
}

/// The arguments of `serve` as this process would have them if it started now: the same command
/// line, with the file and the environment as they are.
pub(crate) fn serve_again() -> Result<ServeArgs, Failure> {
    let line = ExpandedLine::new(std::env::args_os().collect(), std::env::vars_os())?;
    match cli::parse(line.words.clone()).map(|parsed| parsed.command) {
        Ok(RootCommand::Serve(args)) => Ok(*args),
        Ok(_) => Err(Failure::new("this process is no server")),
        Err(error) => Err(line.located(cli::failure(&error, line.words.get(1..).unwrap_or(&[])))),
    }
}

/// The options by what becomes of a change in a running server, as the rows of a table.
#[cfg(test)]
fn changes() -> String {
    let options = server::config_options(&server::ServerConfig::default());
    let row = |option: &server::ConfigOption| {
        let change = match option.change {
            server::OptionChange::Reload => "yes",
            server::OptionChange::ReloadIfGiven => "yes, if it was given at the start and still is",
            server::OptionChange::Restart => "at the next start",
        };
        format!("| `{}` | {change} |\n", option.name)
    };
    options.iter().map(row).collect()
}

/// The JSON schema of the file, for editors that check and complete it.
pub(crate) fn schema() -> String {
    let stores = json!({
        "description": "The stores to serve: files or block devices.",
        "type": ["string", "array"],
        "items": { "type": "string" },
    });
    let mut properties = serde_json::Map::from_iter([("stores".to_owned(), stores)]);
    for arg in settable_options() {
        let help = arg.get_long_help().or(arg.get_help());
        let text = help.map(ToString::to_string).unwrap_or_default().replace('\n', " ");
        let values = arg.get_possible_values();
        let names: Vec<&str> = values.iter().map(clap::builder::PossibleValue::get_name).collect();
        let mut schema = match arg.get_action().takes_values() {
            false => json!({ "type": "boolean" }),
            true if names.is_empty() => json!({ "type": ["string", "number"] }),
            true => json!({ "enum": names }),
        };
        schema["description"] = text.replace("  ", " ").into();
        if let Some(default) = arg.get_default_values().first().and_then(|value| value.to_str()) {
            schema["default"] = default.into();
        }
        properties.insert(arg.get_long().unwrap_or_default().to_owned(), schema);
    }
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of `tenuto serve`",
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    format!("{schema:#}\n")
}

/// The options of the command that may stand in a file.
fn settable_options() -> Vec<Arg> {
    let root = cli::command();
    let command = root.find_subcommand(COMMAND).expect("the command is declared");
    let settable = |arg: &&Arg| arg.get_long().is_some_and(|name| !NOT_SETTABLE.contains(&name));
    command.get_arguments().filter(settable).cloned().collect()
}

/// The options of the command that a file and the environment may set: the name of each, and
/// whether it takes a value.
struct SettableOptions(Vec<(String, bool)>);

impl SettableOptions {
    fn new() -> Self {
        let options = settable_options()
            .into_iter()
            .filter_map(|arg| Some((arg.get_long()?.to_owned(), arg.get_action().takes_values())));
        Self(options.collect())
    }

    fn takes_value(&self, key: &str, origin: &dyn Display) -> Result<bool, Failure> {
        if key == "stores" {
            let why = format!("{origin}: stores have no variable");
            return Err(Failure::usage(why).hint("name them in the file or on the command line"));
        }
        let found = self.0.iter().find(|(name, _)| name == key);
        let list = "docs/reference/configuration.md lists the keys";
        found.map(|(_, takes_value)| *takes_value).ok_or_else(|| {
            let names = self.0.iter().map(|(name, _)| name.clone());
            let meant = store::nearest(key, names.chain(["stores".to_owned()]));
            let hint =
                meant.map_or(list.to_owned(), |name| format!("did you mean `{name}`? {list}"));
            Failure::usage(format!("{origin}: serve has no option '{key}'")).hint(hint)
        })
    }

    /// The settings among the environment's variables.
    fn of_environment(
        &self,
        environment: impl Iterator<Item = (OsString, OsString)>,
    ) -> Result<Vec<OptionSetting>, Failure> {
        let mut settings = Vec::new();
        for (variable, value) in environment {
            let Some(name) = variable.to_str().and_then(|name| name.strip_prefix(VARIABLE)) else {
                continue;
            };
            if names_a_service(name) {
                continue;
            }
            let key = name.to_ascii_lowercase().replace('_', "-");
            let origin = format!("environment variable {VARIABLE}{name}");
            let is_config = key == CONFIG;
            let value = match is_config || self.takes_value(&key, &origin)? {
                true => Some(value),
                false if value == "true" => None,
                false if value == "false" => continue,
                false => return Err(not_a_switch(&origin, &value.display())),
            };
            settings.push(OptionSetting { key, value, origin });
        }
        Ok(settings)
    }

    /// The settings of a file; its stores are added to `stores`.
    fn of_file(
        &self,
        path: &Path,
        stores: &mut Vec<OsString>,
    ) -> Result<Vec<OptionSetting>, Failure> {
        let origin = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| {
            let why = format!("cannot read the configuration {origin}: {error}");
            Failure::new(why).hint("name a file in TOML with --config")
        })?;
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            let line = error.span().map_or(1, |span| text[..span.start].lines().count().max(1));
            let why = format!("{origin}: line {line}: {}", error.message());
            Failure::usage(why)
                .hint("the file is TOML: docs/reference/configuration.md has an example")
        })?;
        let mut settings = Vec::new();
        for (key, value) in table {
            if key == "stores" {
                stores.extend(list_of_stores(&origin, value)?);
                continue;
            }
            let value = match (self.takes_value(&key, &origin)?, value) {
                (true, Value::String(text)) => Some(text.into()),
                (true, Value::Integer(number)) => Some(number.to_string().into()),
                (true, Value::Float(number)) => Some(number.to_string().into()),
                (false, Value::Boolean(true)) => None,
                (false, Value::Boolean(false)) => continue,
                (true, _) => {
                    let why = format!("{origin}: '{key}' needs a text or a number");
                    return Err(Failure::usage(why).hint(format!("for example {key} = \"VALUE\"")));
                }
                (false, other) => return Err(not_a_switch(&format!("{origin}: '{key}'"), &other)),
            };
            settings.push(OptionSetting { key, value, origin: origin.to_string() });
        }
        Ok(settings)
    }
}

fn list_of_stores(origin: &dyn Display, value: Value) -> Result<Vec<OsString>, Failure> {
    let texts = match value {
        Value::String(one) => Some(vec![one.into()]),
        Value::Array(many) => {
            many.into_iter().map(|one| one.as_str().map(OsString::from)).collect()
        }
        _ => None,
    };
    texts.ok_or_else(|| {
        let why = format!("{origin}: 'stores' needs a list of paths");
        Failure::usage(why).hint("for example stores = [\"/dev/sdb\", \"/dev/sdc\"]")
    })
}

/// Whether a variable, by its name behind the prefix, is one of those that Kubernetes gives every
/// container for a service, here one that is called `tenuto-serve`.
fn names_a_service(name: &str) -> bool {
    let family = |first: &str| name == first || name.starts_with(&format!("{first}_"));
    name == "SERVICE_HOST" || family("SERVICE_PORT") || family("PORT")
}

fn not_a_switch(origin: &dyn Display, value: &dyn Display) -> Failure {
    Failure::usage(format!("{origin}: {value} is neither true nor false"))
        .hint("write true or false")
}

/// The name in `--name` or `--name=value`.
fn option_name(word: &OsStr) -> Option<&str> {
    word.to_str()?.strip_prefix("--")?.split('=').next()
}

/// The file of `--config FILE` or `--config=FILE`, or of the environment.
fn config_path(words: &[OsString], settings: &[OptionSetting]) -> Option<OsString> {
    let at = words.iter().position(|word| option_name(word) == Some(CONFIG));
    let Some(at) = at else {
        let set = settings.iter().find(|setting| setting.key == CONFIG)?;
        return set.value.clone();
    };
    match words[at].to_str().and_then(|word| word.split_once('=')) {
        Some((_, path)) => Some(path.into()),
        None => words.get(at + 1).cloned(),
    }
}

const COMMAND: &str = "serve";
const CONFIG: &str = "config";
/// The beginning of the names of environment variables; then the option in capitals, with `_`.
const VARIABLE: &str = "TENUTO_SERVE_";
/// Options about the command line itself.
const NOT_SETTABLE: [&str; 3] = [CONFIG, "check-config", "json"];
const HELP: [&str; 2] = ["--help", "-h"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Code;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// What `words` of `serve` become with a file of this text and these variables: the words, or
    /// the error.
    fn expanded(words: &str, file: Option<&str>, variables: &[(&str, &str)]) -> String {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = (std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(format!("tenuto-config-{}-{}", name.0, name.1));
        let mut line: Vec<OsString> = ["tenuto", "serve"]
            .into_iter()
            .chain(words.split_whitespace())
            .map(Into::into)
            .collect();
        if let Some(text) = file {
            std::fs::write(&path, text).unwrap();
            line.extend(["--config".into(), path.clone().into_os_string()]);
        }
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
        let said = match ExpandedLine::new(line, variables) {
            Err(failure) => format!("{}; {}", failure.sentence, failure.hint.unwrap_or_default()),
            Ok(expanded) => match cli::parse(expanded.words.clone()) {
                Ok(_) => {
                    let words = expanded.words[2..].iter().map(|word| word.display().to_string());
                    words.collect::<Vec<_>>().join(" ")
                }
                Err(error) => expanded.located(cli::failure(&error, &expanded.words[1..])).sentence,
            },
        };
        let _ = std::fs::remove_file(&path);
        said.replace(&path.display().to_string(), "FILE")
    }

    #[test]
    fn the_command_line_goes_before_the_environment_and_both_before_the_file() {
        for (words, file, variables, wanted) in [
            ("a", None, &[][..], "a"),
            ("a", None, &[("TENUTO_SERVE_WAIT", "2s")], "--wait=2s a"),
            ("a --wait 1s", None, &[("TENUTO_SERVE_WAIT", "2s")], "a --wait 1s"),
            (
                "a",
                Some("wait = \"3s\""),
                &[("TENUTO_SERVE_WAIT", "2s")],
                "--wait=2s a --config FILE",
            ),
            ("a --wait=1s", Some("wait = \"3s\""), &[], "a --wait=1s --config FILE"),
            (
                "",
                Some("stores = [\"a\", \"b\"]\nsurvive-loss = true\nmax-connections = 9"),
                &[],
                "--max-connections=9 --survive-loss --config FILE -- a b",
            ),
            ("a", Some("survive-loss = false"), &[], "a --config FILE"),
            ("a", None, &[("TENUTO_SERVE_SURVIVE_LOSS", "true")], "--survive-loss a"),
            // Made by Kubernetes for a service of this name.
            (
                "a",
                None,
                &[
                    ("TENUTO_SERVE_SERVICE_HOST", "10.0.0.9"),
                    ("TENUTO_SERVE_SERVICE_PORT_HTTP", "80"),
                    ("TENUTO_SERVE_PORT", "tcp://10.0.0.9:80"),
                    ("TENUTO_SERVE_PORT_80_TCP_ADDR", "10.0.0.9"),
                ],
                "a",
            ),
            // Not options of `serve`.
            ("a", None, &[("TENUTO_STORES", "b"), ("HOME", "/root")], "a"),
        ] {
            assert_eq!(expanded(words, file, variables), wanted, "{words} {file:?} {variables:?}");
        }
    }

    #[test]
    fn each_wrong_setting_is_named_with_its_origin() {
        let keys = "docs/reference/configuration.md lists the keys";
        for (file, variables, wanted) in [
            ("lisen = \"a\"", &[][..], format!("FILE: serve has no option 'lisen'; did you mean `listen`? {keys}")),
            ("store = [\"a\"]", &[], format!("FILE: serve has no option 'store'; did you mean `stores`? {keys}")),
            ("json = true", &[], format!("FILE: serve has no option 'json'; {keys}")),
            ("wait = \"soon\"", &[], "FILE: --wait: 'soon' is not a time such as 500ms, 2s or 1h".to_owned()),
            ("max-connections = 0", &[], "FILE: --max-connections: '0' is not a whole number from 1 to 1000000".to_owned()),
            ("wait = true", &[], "FILE: 'wait' needs a text or a number; for example wait = \"VALUE\"".to_owned()),
            ("survive-loss = 1", &[], "FILE: 'survive-loss': 1 is neither true nor false; write true or false".to_owned()),
            ("stores = 1", &[], "FILE: 'stores' needs a list of paths; for example stores = [\"/dev/sdb\", \"/dev/sdc\"]".to_owned()),
            (
                "wait = \"1s\"\nslot",
                &[],
                "FILE: line 2: key with no value, expected `=`; the file is TOML: \
                 docs/reference/configuration.md has an example".to_owned(),
            ),
            ("", &[("TENUTO_SERVE_WAITS", "1s")], format!("environment variable TENUTO_SERVE_WAITS: serve has no option 'waits'; did you mean `wait`? {keys}")),
            ("", &[("TENUTO_SERVE_STORES", "a")], "environment variable TENUTO_SERVE_STORES: stores have no variable; name them in the file or on the command line".to_owned()),
            ("", &[("TENUTO_SERVE_WAIT", "soon")], "environment variable TENUTO_SERVE_WAIT: --wait: 'soon' is not a time such as 500ms, 2s or 1h".to_owned()),
            ("", &[("TENUTO_SERVE_SURVIVE_LOSS", "yes")], "environment variable TENUTO_SERVE_SURVIVE_LOSS: yes is neither true nor false; write true or false".to_owned()),
        ] {
            assert_eq!(expanded("a", Some(file), variables), wanted, "{file} {variables:?}");
        }
    }

    /// `cargo xtask docs` writes the schema anew.
    #[test]
    fn the_written_schema_is_current() {
        expect_test::expect_file!["../../../docs/reference/serve.schema.json"].assert_eq(&schema());
    }

    /// `cargo xtask docs` writes the document anew.
    #[test]
    fn the_written_openapi_document_is_current() {
        let document = format!("{:#}\n", server::openapi());
        expect_test::expect_file!["../../../docs/reference/openapi.json"].assert_eq(&document);
    }

    #[test]
    fn the_page_says_of_each_option_what_a_reload_does() {
        let page = include_str!("../../../docs/reference/configuration.md");
        assert!(page.contains(&changes()), "write this table:\n{}", changes());
        let mut named: Vec<String> = SettableOptions::new().0.into_iter().map(|(n, _)| n).collect();
        named.push("stores".to_owned());
        let options = server::config_options(&server::ServerConfig::default());
        let mut known: Vec<&str> = options.iter().map(|option| option.name).collect();
        named.sort_unstable();
        known.sort_unstable();
        assert_eq!(named, known);
    }

    #[test]
    fn a_missing_file_is_a_failure_and_help_needs_none() {
        let line = |words: &str| words.split(' ').map(OsString::from).collect::<Vec<_>>();
        let none = std::iter::empty;
        let missing = ExpandedLine::new(line("tenuto serve --config /nothing.toml"), none());
        assert_eq!(missing.unwrap_err().code, Code::Failed);
        assert!(
            ExpandedLine::new(line("tenuto serve --config /nothing.toml --help"), none()).is_ok()
        );
        assert!(ExpandedLine::new(line("tenuto ls --config /nothing.toml"), none()).is_ok());
    }
}
