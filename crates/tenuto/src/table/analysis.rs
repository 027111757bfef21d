//! What is made of measurements that are over, and of traces.

use super::{Command, Row, Value, json};

pub(super) const COMPARE: Command = Command {
    name: "compare",
    about: "Say which figures of two runs differ by more than chance",
    long: "\
A and B are directories that `meter run --out` made. Figures are taken second by second, and blocks of \
seconds are drawn again and again to see how much chance alone would move them (a block bootstrap). The \
same two runs always give the same verdict. Of two directories of `meter capacity` the counts are shown.

Storage has days: repeat runs, A B A B, before blaming a change.",
    inner: &[],
    rows: &[
        Row::needed("A", Value::Path, "The run to compare with")
            .example("meter compare monday tuesday")
            .bad("meter compare", "A and B are missing"),
        Row::needed("B", Value::Path, "The run that may be better or worse")
            .example("meter compare monday tuesday")
            .bad("meter compare monday", "B is missing"),
        Row::option("confidence", Value::Count(50, 99), "In per cent, that no verdict is a false alarm")
            .default("95")
            .example("meter compare monday tuesday --confidence 99")
            .bad(
                "meter compare a b --confidence 100",
                "--confidence: '100' is not a whole number from 50 to 99",
            ),
        Row::option("seed", Value::Count(0, u32::MAX as u64), "What the draws come from")
            .default("1")
            .example("meter compare monday tuesday --seed 2")
            .bad("meter compare a b --seed x", "--seed: 'x' is not a whole number from 0 to 4294967295"),
        json("meter compare monday tuesday --json", "meter compare a b --json=x"),
    ],
};

pub(super) const PROFILE_FROM: Command = Command {
    name: "profile-from",
    about: "Make a profile of what a trace shows a program doing",
    long: "\
Prints a profile as TOML: share of reads, share of sequential operations, sizes and rate as in the TRACE, \
which is told by its looks:

fio: --write_iolog=TRACE (version 3; version 2 has no times)

strace: strace -f -ttt -y -e trace=openat,dup2,read,write,pread64,pwrite64,readv,writev,lseek,close -o \
TRACE PROGRAM; what it reads of the system (/usr, /etc, /proc) is left out

blktrace: blktrace -d DEVICE -o - | blkparse -i - > TRACE, or binary: blkparse -i DEVICE -d TRACE

NFS: tshark -r CAPTURE -Y 'rpc.msgtyp == 0 && nfs' -T fields -E header=y -e frame.time_epoch -e \
nfs.fh.hash -e nfs.procedure_v3 -e nfs.offset3 -e nfs.count3 -e nfs.opcode -e nfs.offset4 -e nfs.count4 \
-e nfs.write.data_length > TRACE

sar: sar -d -p 1 60 > TRACE; rates and a mean size only, all taken as sequential",
    inner: &[],
    rows: &[
        Row::needed("TRACE", Value::Path, "The trace")
            .example("meter profile-from day.strace")
            .bad("meter profile-from", "TRACE is missing"),
        Row::option("name", Value::Text, "Of the profile")
            .long("Unless given, the file's.")
            .example("meter profile-from day.strace --name editor")
            .bad("meter profile-from a --name", "--name needs a value"),
        Row::option("only", Value::Text, "Files or devices with this in their names")
            .long("In blkparse's text a device is named by its number (8,0), in a capture a file by its hash.")
            .example("meter profile-from day.strace --only /mnt/films/")
            .bad("meter profile-from a --only", "--only needs a value"),
        json("meter profile-from day.strace --json", "meter profile-from a --json=x"),
    ],
};

pub(super) const AGENT: Command = Command {
    name: "agent",
    about: "Measure on this machine for `meter run --agents` elsewhere",
    long: "\
Waits for a controller that knows the token, and runs what it asks for: `meter run` on a target inside of \
DIR, never anywhere else, never with --destructive. Both prove the token to each other (HMAC-SHA256) and \
seal every message with it; nothing is encrypted. One measurement at a time; it ends when its controller \
is gone. Stop the agent with Ctrl-C.",
    inner: &[],
    rows: &[
        Row::many("DIR", Value::Path, "Directories that it may touch")
            .example("meter agent /mnt/films --token-file secret")
            .bad("meter agent", "DIR is missing"),
        Row::option("listen", Value::Address, "Where controllers connect")
            .default("127.0.0.1:7070")
            .long("0.0.0.0:7070 opens it to the network; port 0 takes any free port.")
            .example("meter agent /mnt/films --token-file secret --listen 0.0.0.0:7070")
            .bad(
                "meter agent /mnt --listen 7070",
                "--listen: '7070' is not an address such as 127.0.0.1:8080 or [::]:8080",
            ),
        Row::option("token-file", Value::Path, "Holds what controllers must know, too")
            .long("16 bytes or more: openssl rand -hex 32 > secret; chmod 600 secret")
            .example("meter agent /mnt/films --token-file secret")
            .bad("meter agent /mnt --token-file", "--token-file needs a value"),
        Row::switch("stdio", "Speak on standard input and output; the token is the first line")
            .long("As `meter run --hosts` starts it through ssh.")
            .example("meter agent /mnt/films --stdio")
            .bad("meter agent /mnt --stdio=x", "--stdio takes no value"),
    ],
};
