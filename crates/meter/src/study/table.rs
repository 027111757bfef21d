//! The table of studies.

use super::{Change, Claim, Study, StudyFigure, settings};

/// All studies in the order of the paper.
pub const ALL: &[Study] = &[
    BUFFERING,
    LENGTH,
    RANDOM,
    BLOCK_SIZE,
    SHARING,
    CACHE,
    FRAGMENTATION,
    POSITION,
    FILL_LEVEL,
    WRITES,
    NODES,
];

/// Cold and warm cache: sections 6.3 and 6.4.
pub(super) const CACHE: Study = Study {
    name: "cache",
    about: "Cold against warm cache",
    long: "Reads one file through the page cache: emptied of it before, or all of it read before. No \
           place is read twice. --size must fit in memory, or warm is no warmer than cold. The caches \
           of the storage itself are as they are.",
    varies: "page cache",
    two_nodes: false,
    claims: &[
        Claim {
            says: "what is in the cache is read faster than what is on disk",
            place: "6.4, figure 27",
            change: rise(StudyFigure::Rate, "cold", "warm"),
        },
        Claim {
            says: "blocks of a file that is not in the cache take longer",
            place: "6.4, figure 28",
            change: rise(StudyFigure::Block, "warm", "cold"),
        },
    ],
    settings: settings::cache,
};

/// Block sizes: section 6.2.
pub(super) const BLOCK_SIZE: Study = Study {
    name: "block-size",
    about: "Blocks from 4 KiB to 4 MiB",
    long: "Reads runs of 4 MiB from places of one file, block after block, past the page cache.",
    varies: "KiB of a block",
    two_nodes: false,
    claims: &[
        Claim {
            says: "larger blocks are moved faster",
            place: "6.2, figure 21",
            change: rise(StudyFigure::Rate, "4KiB", "1MiB"),
        },
        Claim {
            says: "large blocks take longer to come",
            place: "6.2, figure 22",
            change: rise(StudyFigure::Block, "4KiB", "1MiB"),
        },
        Claim {
            says: "latency as defined rises with the block size",
            place: "6.2, figure 22; its tool's own filling of the buffer was in that",
            change: rise(StudyFigure::Latency, "4KiB", "1MiB"),
        },
    ],
    settings: settings::block_size,
};

/// Fill levels: section 9.2 asks for this study, and section 6.8 has the reason.
pub(super) const FILL_LEVEL: Study = Study {
    name: "fill-level",
    about: "Files on a file system that is nearly empty, and nearly full",
    long: "Fills the file system to 50, 75, 90 and 95 % by reserving space, makes a file on what is \
           left, reads and writes it, and gives everything back; levels that it has passed already are \
           left out. The file is made anew for each run, so this takes as long as writing it. Nothing \
           is written to the space that is reserved: a disk that finds places for itself does not \
           notice. Do not do this where others need the space.",
    varies: "% of the file system in use",
    two_nodes: false,
    claims: &[Claim {
        says: "performance drops as a disk is filled from its edge inwards",
        place: "6.8, figure 38 (a drawing)",
        change: fall(StudyFigure::Total, "as it is", "95 %"),
    }],
    settings: settings::fill_level,
};

/// Positions on the disk: section 6.8.
pub(super) const POSITION: Study = Study {
    name: "position",
    about: "The beginning of a disk against its end",
    long: "Reads a tenth at five places. Of a block device, a large file or a simulated disk that is \
           all of it; in a directory it is the file of --size that is made there, and where that lies \
           is up to the file system: let it take most of the disk.",
    varies: "% of the way inwards",
    two_nodes: false,
    claims: &[Claim {
        says: "the outer tracks of a disk are faster than the inner ones",
        place: "6.8, figures 37 and 38 (drawings)",
        change: fall(StudyFigure::Rate, "first tenth", "last tenth"),
    }],
    settings: settings::position,
};

/// Fragmented files: section 6.7.
pub(super) const FRAGMENTATION: Study = Study {
    name: "fragmentation",
    about: "Files in one piece against files in many",
    long: "Makes the same file five times: in one go, and in pieces of 4 MiB, 1 MiB, 256 KiB and \
           64 KiB for which room is made in any order, as on a file system that has aged. Says in \
           how many pieces each lies, as far as the file system tells; one that copies on write \
           (btrfs, ZFS) may put them together again. All five are kept: they take five times \
           --size.",
    varies: "KiB of a piece",
    two_nodes: false,
    claims: &[Claim {
        says: "fragments make reading slower: 24 MB/s were lost in days of use",
        place: "6.7, figures 35 and 36",
        change: fall(StudyFigure::Total, "in one go", "pieces of 64KiB"),
    }],
    settings: settings::fragmentation,
};

/// Direct and cached reads: section 6.1.
pub(super) const BUFFERING: Study = Study {
    name: "buffering",
    about: "Past the page cache against through it",
    long: "Reads runs in blocks of 64 KiB from one file: past the page cache, and through it, emptied \
           before each run. How even seconds are takes runs of 5 s or more. With runs much longer than \
           the file takes, the second is memory's speed.",
    varies: "way of reading",
    two_nodes: false,
    claims: &[
        Claim {
            says: "with direct I/O the rate is lower",
            place: "6.1, figures 17 and 18",
            change: fall(StudyFigure::Total, "page cache", "direct"),
        },
        Claim {
            says: "with direct I/O the rate is more constant",
            place: "6.1, figures 17 and 18",
            change: fall(StudyFigure::Unevenness, "page cache", "direct"),
        },
    ],
    settings: settings::buffering,
};

/// Shared and separate files: sections 6.3 and 7.1.
pub(super) const SHARING: Study = Study {
    name: "sharing",
    about: "All clients on one file against a file each",
    long: "The paper's edit profile (half of it writes, a tenth at random) in blocks of 1 MiB. \
           Files together are as large in both, past the page cache. Both are kept: they take \
           twice --size.",
    varies: "files",
    two_nodes: false,
    claims: &[
        Claim {
            says: "many files are slower than one",
            place: "6.3, figures 23 and 25; 7.1, figures 56 and 58",
            change: fall(StudyFigure::Total, "one file", "a file each"),
        },
        Claim {
            says: "with many files latency is higher",
            place: "6.3, figures 24 and 26; 7.1, figures 57 and 59",
            change: rise(StudyFigure::Block, "one file", "a file each"),
        },
    ],
    settings: settings::sharing,
};

/// Random access: section 6.1.
pub(super) const RANDOM: Study = Study {
    name: "random",
    about: "Share of random access, from none to all",
    long: "Of 100 transfers so many have each block at a place of its own; the others are runs. \
           Reads one file past the page cache, in blocks of 64 KiB and of 1 MiB. On a disk with \
           an arm several clients are a random load whatever each does: say --clients 1.",
    varies: "% of transfers at random",
    two_nodes: false,
    claims: &[
        Claim {
            says: "the more random access, the lower the rate",
            place: "6.1, figure 20",
            change: fall(StudyFigure::Total, "0 %, blocks of 1MiB", "100 %, blocks of 1MiB"),
        },
        Claim {
            says: "so it is with small blocks",
            place: "6.1, figure 20",
            change: fall(StudyFigure::Total, "0 %, blocks of 64KiB", "100 %, blocks of 64KiB"),
        },
    ],
    settings: settings::random,
};

/// Transfer lengths: section 6.1.
pub(super) const LENGTH: Study = Study {
    name: "length",
    about: "Data length of a transfer, from 64 KiB to 10 MiB",
    long: "Reads runs of one length from places of one file, past the page cache, in blocks of 64 KiB \
           and of 1 MiB, or in one block where the run is shorter.",
    varies: "KiB of a transfer",
    two_nodes: false,
    claims: &[
        Claim {
            says: "the more data is asked for, the higher the rate",
            place: "6.1, figure 19",
            change: rise(StudyFigure::Total, "64KiB, blocks of 64KiB", "10MiB, blocks of 64KiB"),
        },
        Claim {
            says: "so it is with large blocks",
            place: "6.1, figure 19",
            change: rise(StudyFigure::Total, "64KiB, blocks of 1MiB", "10MiB, blocks of 1MiB"),
        },
    ],
    settings: settings::length,
};

/// Kinds of writes: section 7.4.
pub(super) const WRITES: Study = Study {
    name: "writes",
    about: "Edit writes against writes of whole files",
    long: "Each client writes over a file of its own: runs of up to 10 MiB at places of it, or all of \
           it from its beginning, in blocks of 1 MiB, past the page cache.",
    varies: "kind of write",
    two_nodes: false,
    claims: &[Claim {
        says: "edit writes are slower than complete files",
        place: "7.4, figures 69 and 70",
        change: fall(StudyFigure::Total, "whole files", "edit writes"),
    }],
    settings: settings::writes,
};

/// One and two nodes: section 7.5.
pub(super) const NODES: Study = Study {
    name: "nodes",
    about: "One storage node against two",
    long: "Clients with files of their own, on --target alone, and dealt out to --target and --second. \
           Two simulated disks of a model are two nodes.",
    varies: "nodes",
    two_nodes: true,
    claims: &[
        Claim {
            says: "two nodes read up to 2.3 times as much",
            place: "7.5, figure 71",
            change: rise(StudyFigure::Total, "reads, 1 node", "reads, 2 nodes"),
        },
        Claim {
            says: "with two nodes latency is lower: 54 ms instead of 71 ms",
            place: "7.5, figure 72",
            change: fall(StudyFigure::Block, "reads, 1 node", "reads, 2 nodes"),
        },
        Claim {
            says: "two nodes write up to 2.3 times as much",
            place: "7.5, figure 73",
            change: rise(StudyFigure::Total, "writes, 1 node", "writes, 2 nodes"),
        },
        Claim {
            says: "so it is with latency of writes",
            place: "7.5, figure 74",
            change: fall(StudyFigure::Block, "writes, 1 node", "writes, 2 nodes"),
        },
    ],
    settings: settings::nodes,
};

/// The figure is larger at `to` than at `from`.
const fn rise(figure: StudyFigure, from: &'static str, to: &'static str) -> Change {
    Change { figure, from, to, more: true }
}

/// The figure is smaller at `to` than at `from`.
const fn fall(figure: StudyFigure, from: &'static str, to: &'static str) -> Change {
    Change { figure, from, to, more: false }
}
