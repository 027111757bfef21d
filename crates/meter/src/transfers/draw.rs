//! The random choice of transfers, drawn in the order of figure 16.

use super::cells::Cells;
use super::mix::{PAGE, SMALLEST_BLOCK};
use super::{Dice, Length, TransferMix};
use crate::log::OperationKind;
use crate::profiles::{self, Draws};
use std::time::Duration;
use units::{index, millis};

/// One transfer of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrawnTransfer {
    /// The pause before it.
    pub delay: Duration,
    /// The index of the file.
    pub file: u32,
    /// The direction.
    pub kind: OperationKind,
    /// Whether each block has its own random position.
    pub random: bool,
    /// The offset of the first byte, if it is sequential.
    pub start: u64,
    /// The length in bytes.
    pub length: u64,
    /// The size of a block; the last one may be shorter.
    pub block: u32,
}

impl DrawnTransfer {
    /// The number of blocks.
    pub fn blocks(&self) -> u32 {
        let blocks = self.length.div_ceil(u64::from(self.block));
        u32::try_from(blocks).expect("a transfer has fewer blocks")
    }

    /// The length of block `number`.
    pub fn bytes_of(&self, number: u32) -> u32 {
        let before = u64::from(self.block) * u64::from(number);
        let left = u32::try_from(self.length - before).unwrap_or(u32::MAX);
        left.min(self.block)
    }
}

/// The random choices for all clients of a run, which depend on the seed and nothing else.
#[derive(Clone, Debug)]
pub struct TransferDraw {
    mix: TransferMix,
    /// The random number generator of each client.
    dice: Vec<Dice>,
    /// The unused positions of each file, where positions are not repeated.
    cells: Vec<Cells>,
    /// The trace mix of each client, where operations are drawn from a trace.
    drawn: Vec<Draws>,
}

impl TransferDraw {
    /// The draws of `clients` clients. The mix has been checked for that number.
    pub fn new(mix: &TransferMix, clients: u32, seed: u64) -> Self {
        let seed_of = |client: u32| seed.wrapping_mul(SPREAD).wrapping_add(client.into());
        let dice = |client: u32| {
            let seed = seed_of(client);
            if mix.ms_meter { Dice::ms_meter(seed) } else { Dice::honest(seed) }
        };
        // A random block takes a cell as well, and may be longer than the transfer.
        let longest = mix.length.most().max(mix.largest_block().into());
        let cell = units::align_up(longest, PAGE);
        let of_file = |file: u32| Cells::new(mix.each.0, cell, seed ^ u64::from(file) << 32);
        let cells = if mix.unrepeated { (0..mix.files).map(of_file).collect() } else { Vec::new() };
        let of = |client| Some(mix.drawn.as_ref()?.draws(mix.each.0, seed_of(client)));
        let drawn = (0..clients).filter_map(of).collect();
        Self { mix: mix.clone(), dice: (0..clients).map(dice).collect(), cells, drawn }
    }

    /// The client's next transfer.
    pub fn next(&mut self, client: u32) -> DrawnTransfer {
        let Self { mix, dice, cells, drawn } = self;
        let dice = &mut dice[index(client)];
        let delay = Duration::from_millis(dice.below(millis(mix.delay)));
        let file = match mix.own_file {
            true => client,
            false => u32::try_from(dice.below(mix.files.into())).expect("below the files"),
        };
        if let Some(draws) = drawn.get_mut(index(client)) {
            let draw = draws.next().expect("the mix has been checked: all sizes fit");
            return of_trace(draw, file, delay);
        }
        let kind = if dice.percent(mix.write_percent) {
            OperationKind::Write
        } else {
            OperationKind::Read
        };
        let random = dice.percent(mix.random_percent);
        let smallest = u64::from(SMALLEST_BLOCK);
        let mut length = match mix.length {
            Length::UpTo(most) if mix.ms_meter => {
                smallest + dice.below(most.saturating_sub(smallest))
            }
            Length::UpTo(most) => smallest + dice.below(most.saturating_sub(smallest) + 1),
            Length::Frames(bytes, most) => bytes * (1 + dice.below(most.into())),
            Length::Whole => mix.each.0,
        };
        let start = match cells.get_mut(index(file)) {
            _ if mix.length == Length::Whole => 0,
            // Each random block takes its own cell.
            Some(cells) if !random => cells.next(),
            Some(_) => 0,
            None => place(dice, mix, length),
        };
        let number = dice.below(mix.blocks.len() as u64);
        let mut block = mix.blocks[usize::try_from(number).expect("below the blocks")];
        // The published tool halves a block that is not smaller than its transfer; frames have one
        // size.
        while u64::from(block) >= length && block / 2 >= SMALLEST_BLOCK && !whole_frames(mix) {
            block /= 2;
        }
        if mix.ms_meter {
            length = length / u64::from(block) * u64::from(block);
        }
        DrawnTransfer { delay, file, kind, random, start, length, block }
    }

    /// The position of a block of a random transfer.
    pub fn place(&mut self, client: u32, transfer: &DrawnTransfer) -> u64 {
        if self.mix.drawn.is_some() {
            return transfer.start;
        }
        match self.cells.get_mut(index(transfer.file)) {
            Some(cells) => cells.next(),
            None => place(&mut self.dice[index(client)], &self.mix, transfer.block.into()),
        }
    }
}

/// An operation of a trace as a transfer of one block.
fn of_trace(draw: profiles::DrawnOperation, file: u32, delay: Duration) -> DrawnTransfer {
    let profiles::DrawnOperation { write, sequential, offset: start, bytes: length, .. } = draw;
    DrawnTransfer {
        delay,
        file,
        kind: if write { OperationKind::Write } else { OperationKind::Read },
        random: !sequential,
        start,
        length,
        block: u32::try_from(length).expect("the mix has been checked: no block is larger"),
    }
}

/// A random position in a file, with room for `length` bytes.
fn place(dice: &mut Dice, mix: &TransferMix, length: u64) -> u64 {
    let place = dice.below(mix.each.0 - length);
    if mix.ms_meter { place } else { units::align_down(place, PAGE) }
}

fn whole_frames(mix: &TransferMix) -> bool {
    matches!(mix.length, Length::Frames(..))
}

/// The factor that makes the sequences of neighbouring seeds independent (the golden ratio in 64
/// bits).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
