//! What the commands do: one file per family, glue only.

mod calibrate;
mod check;
mod disk_show;
mod emulation;
mod meter;
mod meter_agent;
mod meter_blame;
mod meter_bottleneck;
mod meter_compare;
mod meter_environment;
mod meter_fleet;
mod meter_fleet_page;
mod meter_hold;
mod meter_lend;
mod meter_methods;
mod meter_metrics;
mod meter_network;
mod meter_players;
mod meter_plots;
mod meter_port;
mod meter_profile_from;
mod meter_profiles;
mod meter_ramp;
mod meter_record;
mod meter_report;
mod meter_report_page;
mod meter_search;
mod meter_search_page;
mod meter_streams;
mod meter_study;
mod meter_study_page;
mod meter_target;
mod meter_threshold;
mod meter_transfers;
mod meter_transfers_page;
mod models;
mod plan;
mod play;
mod renditions;
mod reproduce;
mod serve;
mod shell;
mod simulate;
mod simulate_titles;
mod stores;
mod transfer;
mod trust;

use crate::cli::Args;
use crate::failure::Failure;

/// Runs the command of a parsed command line.
pub(crate) fn run(matches: &clap::ArgMatches) -> Result<(), Failure> {
    let (name, inner) = matches.subcommand().expect("the parser wants a command");
    let args = Args(inner);
    if !crate::WHOLE {
        return lent(inner);
    }
    match name {
        "format" => stores::format(&args),
        "ingest" => transfer::ingest(&args),
        "ls" => stores::ls(&args),
        "info" => stores::info(&args),
        "export" => transfer::export(&args),
        "rm" => stores::rm(&args),
        "rename" => stores::rename(&args),
        "check" => check::check(&args),
        "serve" => serve::serve(&args),
        "play" => play::play(&args),
        "calibrate" => calibrate::calibrate(&args),
        "plan" => plan::plan(&args),
        "disk" => match inner.subcommand().expect("the parser wants a command") {
            ("models", inner) => models::models(&Args(inner)),
            ("show", inner) => disk_show::show(&Args(inner)),
            ("emulate", inner) => emulation::emulate(&Args(inner)),
            ("stats", inner) => emulation::stats(&Args(inner)),
            (other, _) => unreachable!("the table has no command disk {other}"),
        },
        "meter" => match inner.subcommand().expect("the parser wants a command") {
            ("rounds", inner) => meter::rounds(&Args(inner)),
            ("run", inner) => meter_streams::run(&Args(inner)),
            ("ramp", inner) => meter_ramp::ramp(&Args(inner)),
            ("report", inner) => meter_report::report(&Args(inner)),
            ("transfers", inner) => meter_transfers::run(&Args(inner)),
            ("bottleneck", inner) => meter_bottleneck::run(&Args(inner)),
            ("methods", inner) => meter_methods::run(&Args(inner)),
            ("capacity", inner) => meter_streams::capacity(&Args(inner)),
            ("agent", inner) => meter_agent::run(&Args(inner)),
            ("study", inner) => match inner.subcommand().expect("the parser wants a command") {
                ("network", inner) => meter_network::network(&Args(inner)),
                (name, inner) => meter_study::run(name, &Args(inner)),
            },
            ("compare", inner) => meter_compare::run(&Args(inner)),
            ("profile-from", inner) => meter_profile_from::run(&Args(inner)),
            ("profiles", inner) => meter_profiles::profiles(&Args(inner)),
            (other, _) => unreachable!("the table has no command meter {other}"),
        },
        "simulate" => match inner.subcommand().expect("the parser wants a command") {
            ("admission", inner) => simulate::admission(&Args(inner)),
            (other, _) => unreachable!("the table has no command simulate {other}"),
        },
        "reproduce" => reproduce::reproduce(&args),
        "completions" => shell::completions(&args),
        "man" => shell::man(&args),
        other => unreachable!("the table has no command {other}"),
    }
}

/// What a program that is copied to hosts does.
fn lent(meter: &clap::ArgMatches) -> Result<(), Failure> {
    match meter.subcommand().expect("the parser wants a command") {
        ("agent", inner) => meter_agent::run(&Args(inner)),
        ("run", inner) => meter_streams::run(&Args(inner)),
        (other, _) => unreachable!("the table has no command meter {other}"),
    }
}
