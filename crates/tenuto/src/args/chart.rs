//! The Helm chart in `packaging/helm` names options that exist. Whether Kubernetes takes what it
//! makes is checked by `scripts/helm.sh`.

use crate::cli;
use std::collections::BTreeSet;
use std::path::Path;

/// The options in a file of the chart, without their dashes.
fn options(file: &str) -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/helm").join(file);
    let text = std::fs::read_to_string(&path).expect("the chart");
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    let options = words.filter_map(|word| word.strip_prefix("--"));
    // Documents are separated by dashes alone.
    options.filter(|name| !name.starts_with('-')).map(str::to_owned).collect()
}

#[test]
fn the_chart_names_options_that_exist() {
    let command = cli::command();
    for (file, commands) in [
        ("tenuto/templates/nodes.yaml", [&["serve"][..], &["cluster", "drain"]].as_slice()),
        ("tenuto/templates/directors.yaml", &[&["director"]]),
        ("tenuto/templates/_helpers.tpl", &[&["serve"]]),
        ("tenuto/templates/_helpers.tpl", &[&["director"]]),
        ("tries/full.yaml", &[&["serve"], &["director"]]),
    ] {
        let named = |names: &[&str]| {
            let found = names.iter().fold(&command, |command, name| {
                command.find_subcommand(name).unwrap_or_else(|| panic!("{name} is a command"))
            });
            let longs = found.get_arguments().filter_map(|option| option.get_long());
            longs.map(str::to_owned).collect::<BTreeSet<_>>()
        };
        let known: BTreeSet<_> = commands.iter().flat_map(|names| named(names)).collect();
        let found = options(file);
        assert!(!found.is_empty(), "{file} names options");
        let unknown: Vec<_> = found.difference(&known).collect();
        assert!(unknown.is_empty(), "{file}: {unknown:?} are no options of {commands:?}");
    }
}

#[test]
fn the_chart_has_the_version_of_the_program() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/helm/tenuto/Chart.yaml");
    let chart = std::fs::read_to_string(path).expect("the chart");
    let version = env!("CARGO_PKG_VERSION");
    for line in [format!("version: {version}"), format!("appVersion: \"{version}\"")] {
        assert!(chart.lines().any(|it| it == line), "Chart.yaml has '{line}'");
    }
}
