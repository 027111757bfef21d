//! What is simulated, besides published results.

use super::disks::MODELS;
use super::{Command, Row, Value, json};

pub(super) const SIMULATE: Command = Command {
    name: "simulate",
    about: "Try the scheduler on disks made of arithmetic",
    long: "",
    rows: &[],
    inner: &[ADMISSION],
};

const ADMISSION: Command = Command {
    name: "admission",
    about: "Compare admission policies on thousands of scenarios",
    long: "\
Draws scenarios (viewers who ask for parts of titles, faster, slower, skipping, backwards, at random \
times) and plays each with every policy in virtual time: which would let everybody in, was anybody \
late, how many buffers did it take, and what would the disk in fact have delivered. The policies and \
the rule of what is read next are the ones that serve; the disk is a model. The same seed says the \
same on every machine. docs/concepts/admission.md shows and explains the outcome.",
    inner: &[],
    rows: &[
        Row::option("preset", Value::Choice(PRESETS), "What is tried")
            .default("paper")
            .example("simulate admission --preset stress")
            .bad(
                "simulate admission --preset film",
                "--preset: 'film' is not one of paper, large, library, stress, long-run, slowing",
            ),
        Row::option("policy", Value::Text, "Policies to compare, by commas")
            .long(
                "As in `tenuto serve --admission`; 'all' for every one but none. Without it: what the \
                 preset compares. A policy named here reads in long reads, as Tenuto does; the \
                 paper's, that read single blocks, are in the presets.",
            )
            .example("simulate admission --policy time-domain,vbrsim")
            .bad("simulate admission --policy", "--policy needs a value"),
        Row::option("disk", Value::Choice(MODELS), "The disk, instead of the preset's")
            .example("simulate admission --disk hdd-20tb")
            .bad(
                "simulate admission --disk floppy",
                "--disk: 'floppy' is not one of st39183w, atlas-iv, st318406lw, hdd-20tb, ssd-sata, \
                 ssd-nvme",
            ),
        Row::option("store", Value::Path, "A store whose titles are asked for, and their places")
            .long("Its disk is the preset's, or --disk, stretched over the store.")
            .example("simulate admission --store film.store --disk hdd-20tb")
            .bad("simulate admission --store", "--store needs a value"),
        Row::option("scenarios", Value::Count(1, 10_000_000), "Scenarios for each arrival rate")
            .long(
                "Runs, with --preset stress and long-run; --preset slowing is one. Without it: 10500 \
                 for paper, so that more than 1000 fall into each band near the limit (about six \
                 minutes of two cores), 3000 for large, 60 for library, and 360 runs of stress. 560 \
                 show the shape.",
            )
            .example("simulate admission --scenarios 6000")
            .bad(
                "simulate admission --scenarios 0",
                "--scenarios: '0' is not a whole number from 1 to 10000000",
            ),
        Row::option("arrivals", Value::Arrivals, "When viewers come, instead of the preset's three")
            .example("simulate admission --arrivals poisson:500ms")
            .bad(
                "simulate admission --arrivals often",
                "--arrivals: 'often' is not a way to arrive: 'all', 'every:200ms' or 'poisson:500ms'",
            ),
        Row::option("read-size", Value::Size, "Bytes of a long read at most")
            .long("Without it 1 MiB; 4 MiB with --preset library.")
            .example("simulate admission --read-size 2MiB")
            .bad(
                "simulate admission --read-size x",
                "--read-size: 'x' is not a size such as 64KiB, 40GiB or 2TB",
            ),
        Row::option("memory", Value::Size, "Buffers")
            .long(
                "Without it unlimited, as in the paper; 125 MiB with --preset long-run and slowing. --preset \
                 stress draws it.",
            )
            .example("simulate admission --preset long-run --memory 500MiB")
            .bad(
                "simulate admission --memory lots",
                "--memory: 'lots' is not a size such as 64KiB, 40GiB or 2TB",
            ),
        Row::option("seed", Value::Count(0, u64::MAX), "Where all chance comes from")
            .default("1")
            .example("simulate admission --seed 7")
            .bad(
                "simulate admission --seed x",
                "--seed: 'x' is not a whole number from 0 to 18446744073709551615",
            ),
        Row::option("out", Value::Path, "A directory for the page and the charts")
            .long(
                "Made if it is not there. Writes admission-PRESET.html, which has all, and a chart \
                 each as SVG.",
            )
            .example("simulate admission --out charts")
            .bad("simulate admission --out", "--out needs a value"),
        Row::switch("destroy", "Overwrite what an earlier run wrote there")
            .example("simulate admission --out charts --destroy")
            .bad("simulate admission --destroy=x", "--destroy takes no value"),
        json("simulate admission --json", "simulate admission --json=x"),
    ],
};

const PRESETS: &[(&str, &str)] = &[
    (
        "paper",
        "clips on the smaller disk of Makaroff, Coutu and Liu, by bands of load; the default",
    ),
    ("large", "the same on their larger disk"),
    ("library", "feature-length films on a disk of today"),
    ("stress", "anything at random, to see whether anybody is late"),
    ("long-run", "three quarters of an hour of twice what the disk holds, to see what is sold"),
    ("slowing", "a disk that takes longer for ten minutes, to see who is let in meanwhile"),
];
