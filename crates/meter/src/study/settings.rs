//! The settings of each study.

use super::setting::MIB;
use super::{Cache, FileLayout, Scale, Setting};
use crate::transfers::{Length, TransferMix};
use units::ByteCount;
use units::show::count;

type SettingsOf = fn(&Scale) -> Vec<Setting>;

/// The settings of each study, by its name.
pub(super) const ALL: [(&str, SettingsOf); 11] = [
    ("buffering", buffering),
    ("length", length),
    ("random", random),
    ("block-size", block_size),
    ("sharing", sharing),
    ("cache", cache),
    ("fragmentation", fragmentation),
    ("position", position),
    ("fill-level", fill_level),
    ("writes", writes),
    ("nodes", nodes),
];

fn cache(scale: &Scale) -> Vec<Setting> {
    let mut mix = scale.reads(1);
    mix.unrepeated = true;
    // No position is read twice, so that no hit in the cache comes from this run itself.
    let places = mix.each.0 / mix.length.most().max(MIB.into());
    let most = (places / u64::from(scale.clients)).max(1);
    [("cold", Cache::Emptied), ("warm", Cache::Filled)]
        .map(|(name, cache)| Setting { cache, most: Some(most), ..Setting::new(name, mix.clone()) })
        .into()
}

fn block_size(scale: &Scale) -> Vec<Setting> {
    let kib = [4, 16, 64, 256, 1024, 4096];
    let setting = |kib: u32| {
        let mut mix = scale.reads(1);
        mix.blocks = vec![kib << 10];
        // Whole frames, because the last block of a run would otherwise be shorter than the others.
        mix.length = Length::Frames(u64::from(mix.blocks[0]).max(4 << 20), 1);
        Setting { x: Some(f64::from(kib)), ..Setting::new(size(u64::from(kib) << 10), mix) }
    };
    kib.map(setting).into()
}

fn fill_level(scale: &Scale) -> Vec<Setting> {
    let setting = |percent: u8| {
        let mut mix = scale.reads(1);
        mix.write_percent = 50;
        let name = if percent == 0 { "as it is".to_owned() } else { format!("{percent} %") };
        let (x, layout) = (Some(f64::from(percent)), FileLayout::FilledTo(percent));
        Setting { x, layout, ..Setting::new(name, mix) }
    };
    [0, 50, 75, 90, 95].map(setting).into()
}

fn position(scale: &Scale) -> Vec<Setting> {
    let mut mix = scale.reads(1);
    let all = mix.each.0;
    let part = units::align_down(all / 10, 4096);
    (mix.each, mix.length) = (ByteCount(part), Length::UpTo((10 << 20).min(part / 2)));
    // The position in percent of the way from the first tenth to the last.
    [("first tenth", 0), ("25 %", 25), ("50 %", 50), ("75 %", 75), ("last tenth", 100)]
        .map(|(name, percent): (&str, u32)| {
            let from = units::align_down((all - part) / 100 * u64::from(percent), 4096);
            let mix = TransferMix { from, ..mix.clone() };
            Setting { x: Some(percent.into()), whole: all, ..Setting::new(name, mix) }
        })
        .into()
}

fn fragmentation(scale: &Scale) -> Vec<Setting> {
    let one = |name: String, layout, kib: Option<u32>| {
        let mix = scale.reads(1);
        Setting { layout, x: kib.map(f64::from), ..Setting::new(name, mix) }
    };
    let pieces = [4096, 1024, 256, 64].map(|kib: u32| {
        let bytes = u64::from(kib) << 10;
        one(format!("pieces of {}", size(bytes)), FileLayout::InPieces(bytes), Some(kib))
    });
    std::iter::once(one("in one go".to_owned(), FileLayout::InOneGo, None)).chain(pieces).collect()
}

fn buffering(scale: &Scale) -> Vec<Setting> {
    let mut mix = scale.reads(1);
    mix.blocks = vec![64 << 10];
    [("direct", Cache::Passed), ("page cache", Cache::Emptied)]
        .map(|(name, cache)| Setting { cache, ..Setting::new(name, mix.clone()) })
        .into()
}

fn sharing(scale: &Scale) -> Vec<Setting> {
    let setting = |(name, files): (&str, u32)| {
        let mut mix = scale.reads(files);
        (mix.write_percent, mix.random_percent) = (50, 10);
        mix.own_file = files == scale.clients;
        Setting::new(name, mix)
    };
    [("one file", 1), ("a file each", scale.clients)].map(setting).into()
}

fn random(scale: &Scale) -> Vec<Setting> {
    let lines = [("blocks of 64KiB", 64 << 10), ("blocks of 1MiB", MIB)];
    let shares = [0, 10, 25, 50, 75, 100];
    let setting = |(line, block): (&'static str, u32), share: u8| {
        let mut mix = scale.reads(1);
        (mix.random_percent, mix.blocks) = (share, vec![block]);
        let name = format!("{share} %, {line}");
        Setting { x: Some(share.into()), line, ..Setting::new(name, mix) }
    };
    lines.into_iter().flat_map(|line| shares.map(|share| setting(line, share))).collect()
}

fn length(scale: &Scale) -> Vec<Setting> {
    let lines = [("blocks of 64KiB", 64 << 10), ("blocks of 1MiB", MIB)];
    let lengths = [64, 256, 1024, 4096, 10_240];
    let setting = |(line, block): (&'static str, u32), kib: u32| {
        let mut mix = scale.reads(1);
        let bytes = u64::from(kib) << 10;
        mix.length = Length::Frames(bytes, 1);
        mix.blocks = vec![block.min(kib << 10)];
        let name = format!("{}, {line}", size(bytes));
        Setting { x: Some(f64::from(kib)), line, ..Setting::new(name, mix) }
    };
    lines.into_iter().flat_map(|line| lengths.map(|kib| setting(line, kib))).collect()
}

fn writes(scale: &Scale) -> Vec<Setting> {
    let setting = |(name, whole): (&str, bool)| {
        let mut mix = scale.reads(scale.clients);
        (mix.write_percent, mix.own_file) = (100, true);
        if whole {
            mix.length = Length::Whole;
        }
        Setting::new(name, mix)
    };
    [("edit writes", false), ("whole files", true)].map(setting).into()
}

fn nodes(scale: &Scale) -> Vec<Setting> {
    // As many files on each of two nodes.
    let files = scale.clients.next_multiple_of(2);
    let setting = |(line, write): (&'static str, u8), nodes: u32| {
        let mut mix = scale.reads(files);
        (mix.write_percent, mix.own_file) = (write, true);
        let name = format!("{line}, {}", count(nodes, "node"));
        Setting { x: Some(nodes.into()), line, nodes, ..Setting::new(name, mix) }
    };
    let lines = [("reads", 0), ("writes", 100)];
    lines.into_iter().flat_map(|line| [1, 2].map(|nodes| setting(line, nodes))).collect()
}

fn size(bytes: u64) -> String {
    match bytes >> 20 {
        0 => format!("{}KiB", bytes >> 10),
        mib => format!("{mib}MiB"),
    }
}
