//! Commands on a store.

use super::{Command, Row, Value, json};

const STORE: Row = Row::needed("STORE", Value::Path, "The store: a file or a block device");

/// For what is done in several stores at once.
const ALSO: Row = Row::options("also", Value::Path, "Another store to do the same in");

pub(super) const COMMANDS: &[Command] = &[FORMAT, INGEST, LS, INFO, EXPORT, RM, RENAME, CHECK];

const FORMAT: Command = Command {
    name: "format",
    about: "Make a store in a file or on a block device",
    long: "\
Makes an empty store. A new file needs --size; an existing file or a block device is used as long \
as it is. What is there already is never overwritten without --destroy.",
    inner: &[],
    rows: &[
        Row::needed("TARGET", Value::Path, "The file to make, or the device to use")
            .example("format film.store --size 40GiB")
            .bad("format", "TARGET is missing"),
        Row::option("size", Value::Size, "Length of the store's file")
            .long(
                "Needed for a new file, which is preallocated, so that its blocks are there when \
                 they are written. Of a block device the whole length is used.",
            )
            .example("format film.store --size 40GiB")
            .bad(
                "format film.store --size big",
                "--size: 'big' is not a size such as 64KiB, 40GiB or 2TB",
            ),
        Row::option("chunk", Value::Size, "Allocation unit, a power of two from 64KiB to 64MiB")
            .default("1MiB")
            .long(
                "Titles take whole chunks. It is not the size of a read: that is chosen when the \
                 store is served.",
            )
            .example("format film.store --size 40GiB --chunk 4MiB")
            .bad(
                "format film.store --chunk 1MB/s",
                "--chunk: '1MB/s' is not a size such as 64KiB, 40GiB or 2TB",
            ),
        Row::option("label", Value::Text, "A name for people")
            .default("")
            .example("format film.store --size 40GiB --label archive")
            .bad("format film.store --label", "--label needs a value"),
        Row::switch("destroy", "Overwrite what is there")
            .long("The one word that allows overwriting, here and everywhere else.")
            .example("format film.store --destroy")
            .bad("format film.store --destroy=yes", "--destroy takes no value"),
        json("format film.store --size 40GiB --json", "format film.store --json=1"),
    ],
};

const INGEST: Command = Command {
    name: "ingest",
    about: "Take files in, one title each",
    long: "\
Copies films into the store without encoding them anew: FFmpeg's programs read any container, \
Tenuto keeps the video and audio tracks frame by frame. Nothing appears in the store until all of \
a title is safely on disk; an interrupted ingest leaves no trace.

A file that cannot be taken in is named with the reason and does not stop the others.

With --also the same title goes into other stores, too, best on other disks: a server of all of them \
plays each title from whichever has the most room, and goes on with another copy when a disk is \
lost.",
    inner: &[],
    rows: &[
        STORE.example("ingest film.store film.mkv").bad("ingest", "STORE and FILE are missing"),
        ALSO.long(
            "May be given several times. Each copy is compared with the first. A store in which \
             there is no room, or that fails, is named, and what went into the others stays \
             there.",
        )
        .example("ingest film.store film.mkv --also other.store --also third.store")
        .bad("ingest film.store film.mkv --also", "--also needs a value"),
        Row::many("FILE", Value::Path, "Files to take in")
            .example("ingest film.store one.mkv two.mov")
            .bad("ingest film.store", "FILE is missing"),
        Row::option("as", Value::Choice(KINDS), "What the files are")
            .default("media")
            .example("ingest film.store master.mxf --as file")
            .bad("ingest film.store film.mkv --as tape", "--as: 'tape' is not one of media, file"),
        Row::option("title", Value::Text, "The title's name, for a single file")
            .long("Without it a title is named after its file, without the extension.")
            .example("ingest film.store a.mkv --title Nosferatu")
            .bad("ingest film.store a.mkv --title", "--title needs a value"),
        Row::switch("allow-damaged", "Take what can be read of a damaged file")
            .long(
                "Without it a file that FFmpeg cannot read to its end is refused. With it the \
                 readable part becomes a title, with a note.",
            )
            .example("ingest film.store torn.mkv --allow-damaged")
            .bad(
                "ingest film.store torn.mkv --allow-damaged=all",
                "--allow-damaged takes no value",
            ),
        Row::switch("renditions", "Take the files in as one title in several sizes")
            .long(
                "The first with its sound, of the others the pictures. A player then gets the best \
                 that there is room for and may change between them, so their key frames must \
                 lie at the same times.",
            )
            .example("ingest film.store film-1080.mp4 film-360.mp4 --renditions --title film")
            .bad("ingest film.store film.mkv --renditions=all", "--renditions takes no value"),
        json("ingest film.store film.mkv --json", "ingest film.store film.mkv --json=x"),
    ],
};

const KINDS: &[(&str, &str)] = &[
    ("media", "films: tracks with times that players can play"),
    ("file", "any bytes: kept as they are, given back bit for bit, never streamed"),
];

const LS: Command = Command {
    name: "ls",
    about: "List the titles of a store",
    long: "\
Lists titles by name. Of several stores, titles that hold the same under the same name are copies of \
one, and listed once, with the stores that have them.",
    inner: &[],
    rows: &[
        Row::many("STORE", Value::Path, "The stores: files or block devices")
            .example("ls film.store other.store")
            .bad("ls", "STORE is missing"),
        Row::switch("long", "Show size, play-out time, rate, tracks and date")
            .example("ls film.store --long")
            .bad("ls film.store --longer", "unknown option '--longer'"),
        json("ls film.store --json", "ls film.store --json=x"),
    ],
};

const INFO: Command = Command {
    name: "info",
    about: "Describe a store, or one of its titles",
    long: "\
Without TITLE: how large the store is, what is free, and what calibration found. With TITLE: its \
tracks with their codecs, rates and places on disk.",
    inner: &[],
    rows: &[
        STORE.example("info film.store").bad("info", "STORE is missing"),
        Row::maybe("TITLE", Value::Text, "A title's name")
            .example("info film.store Nosferatu")
            .bad("info film.store Nosferatu 2", "unexpected argument '2'"),
        json("info film.store --json", "info film.store --json=x"),
    ],
};

const EXPORT: Command = Command {
    name: "export",
    about: "Give a title back as a file",
    long: "\
Writes a media title as a playable MP4 (MOV where the codec needs it) whose frames and times are \
the source's, or a file title bit for bit. Checksums are verified on the way; damaged data is \
never given out as good.",
    inner: &[],
    rows: &[
        STORE
            .example("export film.store Nosferatu out.mp4")
            .bad("export", "STORE, TITLE and OUT are missing"),
        Row::needed("TITLE", Value::Text, "The title's name")
            .example("export film.store Nosferatu out.mp4")
            .bad("export film.store", "TITLE and OUT are missing"),
        Row::needed("OUT", Value::Path, "The file to write")
            .example("export film.store Nosferatu out.mp4")
            .bad("export film.store Nosferatu", "OUT is missing"),
        Row::switch("destroy", "Overwrite OUT if it exists")
            .long("The old file is replaced in one step, once the new one is complete.")
            .example("export film.store Nosferatu out.mp4 --destroy")
            .bad("export film.store Nosferatu out.mp4 --force", "unknown option '--force'"),
        json("export film.store Nosferatu out.mp4 --json", "export a b c --json=x"),
    ],
};

const RM: Command = Command {
    name: "rm",
    about: "Remove a title",
    long: "\
The title disappears at once and for new viewers. Whoever is watching it may watch to the end; \
its space is free after the last one.",
    inner: &[],
    rows: &[
        STORE.example("rm film.store Nosferatu").bad("rm", "STORE and TITLE are missing"),
        Row::needed("TITLE", Value::Text, "The title's name")
            .example("rm film.store Nosferatu")
            .bad("rm film.store", "TITLE is missing"),
        ALSO.long(
            "May be given several times. A store that fails is named and does not stop the others.",
        )
        .example("rm film.store Nosferatu --also other.store")
        .bad("rm film.store Nosferatu --also", "--also needs a value"),
        json("rm film.store Nosferatu --json", "rm film.store Nosferatu --json=x"),
    ],
};

const RENAME: Command = Command {
    name: "rename",
    about: "Give a title another name",
    long: "Never takes a name that another title has. Running streams go on under the old one.",
    inner: &[],
    rows: &[
        STORE
            .example("rename film.store Nosferatu Orlok")
            .bad("rename", "STORE, OLD and NEW are missing"),
        Row::needed("OLD", Value::Text, "The name it has")
            .example("rename film.store Nosferatu Orlok")
            .bad("rename film.store", "OLD and NEW are missing"),
        Row::needed("NEW", Value::Text, "The name it gets")
            .example("rename film.store Nosferatu Orlok")
            .bad("rename film.store Nosferatu", "NEW is missing"),
        ALSO.long(
            "May be given several times. Copies are copies only under the same name: rename all of \
             them.",
        )
        .example("rename film.store Nosferatu Orlok --also other.store")
        .bad("rename film.store Nosferatu Orlok --also", "--also needs a value"),
        json("rename film.store Nosferatu Orlok --json", "rename a b c --json=x"),
    ],
};

const CHECK: Command = Command {
    name: "check",
    about: "Look for damage",
    long: "\
Reads the superblock copies, the catalogue and every title's index and compares them with their \
checksums and with each other. Ends with exit code 4 when something is damaged.

With --also other stores are checked, too, and the copies of titles compared: titles of one name must hold the \
same tracks in the same sizes with the same checksums, and be in all of the stores. Ends with exit code 1 when \
they are not, and nothing is damaged.",
    inner: &[],
    rows: &[
        STORE.example("check film.store").bad("check", "STORE is missing"),
        Row::switch("scrub", "Also read all media and compare it with its checksums")
            .example("check film.store --scrub")
            .bad("check film.store --scrub=all", "--scrub takes no value"),
        ALSO.long(
            "May be given several times. Titles that are not alike, or not everywhere, are named. A \
             store that cannot be checked is named and does not stop the others.",
        )
            .example("check film.store --also other.store")
            .bad("check film.store --also", "--also needs a value"),
        json("check film.store --json", "check film.store --json=x"),
    ],
};
