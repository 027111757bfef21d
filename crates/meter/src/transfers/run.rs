//! The run of transfers: clients that start, continue and end them.

use super::{
    DrawnTransfer, PerClient, TransferDraw, TransferMix, TransferRowKey, TransfersOutcome,
};
use crate::log::{NONE, OperationKind, Record, RecordSink, errno};
use crate::progress::RunProgress;
use crate::target::{Handle, IoCompletion, IoRequest, Port};
use device::DeviceError;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use units::grown;
use units::{BitRate, ByteCount, Hinted, Moment, index};

/// The plan of a run of transfers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TransfersPlan {
    /// The mix from which transfers are drawn.
    pub mix: TransferMix,
    /// The number of clients.
    pub clients: u32,
    /// Time after which no transfer begins. Transfers in progress are completed, unless nothing
    /// completes for half a minute.
    pub duration: Duration,
    /// The largest number of transfers of each client.
    pub most: Option<u64>,
    /// The random seed: the same seed gives the same transfers.
    pub seed: u64,
    /// The rate of all clients together; `None` for as fast as the storage allows. Blocks are due
    /// by the clock, however late the storage is with those before.
    pub rate: Option<BitRate>,
}

/// The state of a client.
#[derive(Clone, Debug)]
enum TransferClient {
    /// The client waits until a moment and then begins this transfer.
    Waits(Moment, DrawnTransfer),
    /// The client's next block is due at a moment.
    Paced(Moment, Moving),
    /// A block of a transfer is in flight.
    Moves(Moving),
    /// The client has made all its transfers.
    Done,
}

/// A transfer in progress.
#[derive(Clone, Debug)]
struct Moving {
    transfer: DrawnTransfer,
    /// The number of the transfer among the client's.
    number: u64,
    /// The moment at which it began.
    began: Moment,
    /// The block in flight, its offset, and the time of its request.
    block: u32,
    offset: u64,
    asked: Moment,
    /// The moment at which the block was due; without a rate that of its request.
    due: Moment,
    /// The time in which the next block was not due yet.
    paced: Duration,
    /// The total time of the completed blocks.
    data: Duration,
    open: Duration,
    meter: Duration,
    /// The time at which the block before was complete.
    over: Moment,
}

struct TransfersRun<'a> {
    plan: &'a TransfersPlan,
    port: &'a mut dyn Port,
    log: &'a mut dyn RecordSink,
    origin: Moment,
    draw: TransferDraw,
    clients: Vec<TransferClient>,
    /// The number of transfers that each client has begun.
    begun: Vec<u64>,
    /// The first moment at which a client begins a transfer or its next block is due.
    soonest: Moment,
    outcome: TransfersOutcome,
    progress: RunProgress,
    /// Bytes of all blocks that have become due.
    came_due: u64,
    /// The time that msMeter takes to fill a byte; zero where it is not imitated.
    fill: f64,
}

/// Makes the transfers of the plan. `go_on` is called at every completion, and a few hundred times
/// a second; if it returns false, the outcome ends there and is not complete. Every block goes to
/// `log`. A block that fails ends its transfer; one that cannot even be submitted ends the run. The
/// mix has been checked for the number of clients.
pub fn run(
    plan: &TransfersPlan,
    port: &mut dyn Port,
    log: &mut dyn RecordSink,
    go_on: &mut dyn FnMut(RunProgress) -> bool,
) -> Result<TransfersOutcome, DeviceError> {
    let fill = if plan.mix.ms_meter { fill_of_a_byte(port) } else { 0.0 };
    let origin = port.now();
    let count = usize::try_from(plan.clients).expect("32 bits fit");
    let mut run = TransfersRun {
        plan,
        port,
        log,
        origin,
        draw: TransferDraw::new(&plan.mix, plan.clients, plan.seed),
        clients: vec![TransferClient::Done; count],
        begun: vec![0; count],
        soonest: Moment::MAX,
        outcome: TransfersOutcome {
            clients: vec![PerClient::default(); count],
            ..TransfersOutcome::default()
        },
        progress: RunProgress::default(),
        came_due: 0,
        fill,
    };
    let complete = run.all(go_on)?;
    Ok(run.outcome(complete))
}

impl TransfersRun<'_> {
    fn all(&mut self, go_on: &mut dyn FnMut(RunProgress) -> bool) -> Result<bool, DeviceError> {
        for client in 0..self.plan.clients {
            // All first transfers are drawn before the clock matters, so that drawing delays none.
            self.next(client, self.origin);
        }
        let mut done = Vec::new();
        let mut heard = self.origin;
        loop {
            let now = self.port.now();
            // Before the end of the duration clients may pause for as long as the plan says.
            let silent = now.since(heard.max(self.origin + self.plan.duration));
            let moves = |client: &TransferClient| matches!(client, TransferClient::Moves(_));
            if silent >= PATIENCE && self.clients.iter().any(moves) {
                return Ok(false);
            }
            // Most wake-ups are completions of blocks, after which no client has to be searched.
            if self.soonest <= now && self.begin_due(now)? {
                // The storage was not asked for anything meanwhile.
                heard = heard.max(now);
            }
            if self.clients.iter().all(|client| matches!(client, TransferClient::Done)) {
                return Ok(true);
            }
            // Wakes up regularly, so that a stop and the progress do not wait for the storage.
            self.port.wait(self.soonest.min(now + self.port.heartbeat()), &mut done)?;
            for arrived in done.drain(..) {
                heard = heard.max(arrived.at);
                self.arrived(arrived)?;
            }
            self.progress.elapsed = self.port.now().since(self.origin);
            if !go_on(self.progress) {
                return Ok(false);
            }
        }
    }

    /// Begins what is due. Returns whether a block was waiting for its time.
    fn begin_due(&mut self, now: Moment) -> Result<bool, DeviceError> {
        let mut paced = false;
        self.soonest = Moment::MAX;
        for client in 0..self.plan.clients {
            match &self.clients[index(client)] {
                TransferClient::Waits(until, _) | TransferClient::Paced(until, _)
                    if *until > now =>
                {
                    self.soonest = self.soonest.min(*until);
                }
                TransferClient::Waits(_, transfer) => {
                    let transfer = *transfer;
                    self.begin(client, transfer)?;
                }
                TransferClient::Paced(due, moving) => {
                    let (due, moving) = (*due, moving.clone());
                    paced = true;
                    self.released(client, due, moving)?;
                }
                TransferClient::Moves(_) | TransferClient::Done => {}
            }
        }
        Ok(paced)
    }

    /// Draws the client's next transfer, which begins after `from`.
    fn next(&mut self, client: u32, from: Moment) {
        let enough = self.plan.most.is_some_and(|most| self.begun[index(client)] >= most);
        // A transfer that began in time is completed, even after the end of the duration.
        self.clients[index(client)] = if enough || from.since(self.origin) >= self.plan.duration {
            TransferClient::Done
        } else {
            let transfer = self.draw.next(client);
            let until = from + transfer.delay;
            self.soonest = self.soonest.min(until);
            TransferClient::Waits(until, transfer)
        };
    }

    fn begin(&mut self, client: u32, transfer: DrawnTransfer) -> Result<(), DeviceError> {
        let began = self.port.now();
        let number = self.begun[index(client)];
        self.begun[index(client)] += 1;
        let zero = Duration::ZERO;
        self.ask(
            client,
            Moving {
                transfer,
                number,
                began,
                block: 0,
                offset: 0,
                asked: began,
                due: began,
                paced: zero,
                data: zero,
                open: zero,
                meter: zero,
                over: began,
            },
        )
    }

    /// Submits the current block of `moving` when it is due.
    fn ask(&mut self, client: u32, mut moving: Moving) -> Result<(), DeviceError> {
        let Some(rate) = self.plan.rate else {
            moving.due = self.port.now();
            return self.submit(client, moving);
        };
        let bits = u128::from(self.came_due) * 8_000_000_000;
        let after = u64::try_from(bits / u128::from(rate.0.max(1))).unwrap_or(u64::MAX);
        // From the origin each time, so that rounding does not add up; and not from the present,
        // so that storage that was late has to catch up.
        let due = Moment(self.origin.0.saturating_add(after));
        self.came_due += u64::from(moving.transfer.bytes_of(moving.block));
        moving.due = due;
        if due <= self.port.now() {
            return self.submit(client, moving);
        }
        self.soonest = self.soonest.min(due);
        self.clients[index(client)] = TransferClient::Paced(due, moving);
        Ok(())
    }

    /// Submits a block that has become due.
    fn released(
        &mut self,
        client: u32,
        due: Moment,
        mut moving: Moving,
    ) -> Result<(), DeviceError> {
        if moving.block > 0 {
            moving.paced += due.since(moving.over);
        } else if due.since(self.origin) >= self.plan.duration {
            // The transfer would begin after the end.
            self.clients[index(client)] = TransferClient::Done;
            return Ok(());
        } else {
            moving.began = due;
        }
        // From here on waiting is the meter's.
        moving.over = due;
        self.submit(client, moving)
    }

    fn submit(&mut self, client: u32, mut moving: Moving) -> Result<(), DeviceError> {
        let transfer = moving.transfer;
        moving.offset = match transfer.random {
            true => self.draw.place(client, &transfer),
            false => transfer.start + u64::from(moving.block) * u64::from(transfer.block),
        };
        moving.asked = self.port.now();
        // Time between two blocks is the meter's: it had nothing to wait for.
        moving.meter += moving.asked.since(moving.over);
        self.port.begin(IoRequest {
            tag: client.into(),
            kind: transfer.kind,
            file: transfer.file,
            offset: self.plan.mix.from + moving.offset,
            len: transfer.bytes_of(moving.block).into(),
            handle: Handle::Own {
                client,
                open: moving.block == 0,
                close: moving.block + 1 == transfer.blocks(),
            },
        })?;
        self.clients[index(client)] = TransferClient::Moves(moving);
        Ok(())
    }

    fn arrived(&mut self, arrived: IoCompletion) -> Result<(), DeviceError> {
        let client = u32::try_from(arrived.tag).expect("a client's number");
        let waiting = std::mem::replace(&mut self.clients[index(client)], TransferClient::Done);
        let TransferClient::Moves(mut moving) = waiting else {
            panic!("a completion belongs to a client with a block in flight")
        };
        self.keep(client, &moving, Some(&arrived));
        // Opening and closing are latency, not part of the data's time.
        let extra = arrived.open + arrived.close;
        let took = arrived.at.since(moving.asked).saturating_sub(extra);
        moving.data += took;
        moving.open += extra;
        moving.over = arrived.at;
        if let Err(error) = &arrived.result {
            self.outcome.failed += 1;
            self.outcome.first_failure.get_or_insert_with(|| error.reason());
            // A target that refuses everything must not be asked a million times a second.
            self.next(client, arrived.at + AFTER_A_FAILURE);
            return Ok(());
        }
        let transfer = moving.transfer;
        let bytes = ByteCount(transfer.bytes_of(moving.block).into());
        let row = self.outcome.rows.entry(key(&transfer)).or_default();
        row.blocks += 1;
        row.service.record(took);
        self.count_second(arrived.at, transfer.kind, bytes, took);
        self.progress.bytes += bytes;
        self.outcome.response.record(arrived.at.since(moving.due).saturating_sub(extra));
        moving.block += 1;
        if moving.block < transfer.blocks() {
            return self.ask(client, moving);
        }
        self.over(client, &moving);
        self.next(client, arrived.at);
        Ok(())
    }

    /// Counts a completed transfer.
    fn over(&mut self, client: u32, moving: &Moving) {
        let Moving { transfer, data, open, meter, paced, .. } = *moving;
        let bytes = ByteCount(transfer.length);
        // All the time that was not spent on data or on waiting until a block was due: opening,
        // closing and waiting between blocks.
        let latency = moving.over.since(moving.began).saturating_sub(data + paced);
        let row = self.outcome.rows.entry(key(&transfer)).or_default();
        row.transfers += 1;
        row.bytes += bytes;
        row.data += data;
        row.latency += latency;
        row.longest_latency = row.longest_latency.max(latency);
        row.meter += meter;
        row.open += open;
        row.fill += Duration::from_secs_f64(f64::from(transfer.block) * self.fill);
        #[expect(clippy::cast_precision_loss, reason = "a rate, for a mean")]
        let rate = BitRate::of(bytes, data).0 as f64;
        row.rates += rate;
        let of = &mut self.outcome.clients[index(client)];
        of.transfers += 1;
        of.bytes += bytes;
        of.data += data;
        of.latency += latency;
        of.longest_latency = of.longest_latency.max(latency);
        self.progress.judged += 1;
    }

    fn count_second(&mut self, at: Moment, kind: OperationKind, bytes: ByteCount, took: Duration) {
        let number = usize::try_from(at.since(self.origin).as_secs()).unwrap_or(usize::MAX);
        let second = grown(&mut self.outcome.seconds, number);
        match kind {
            OperationKind::Read => second.read += bytes,
            OperationKind::Write => second.written += bytes,
        }
        second.blocks += 1;
        second.longest = second.longest.max(took);
        self.outcome.heat.count(number as u64, units::nanos(took));
    }

    /// Logs the block in flight; `None` if it was not complete at the end of the run.
    fn keep(&mut self, client: u32, moving: &Moving, arrived: Option<&IoCompletion>) {
        let nanos = |moment: Moment| moment.0.saturating_sub(self.origin.0);
        let asked = nanos(moving.asked);
        let record = Record {
            stream: client,
            file: moving.transfer.file,
            frame: moving.number,
            block: moving.block,
            bytes: moving.transfer.bytes_of(moving.block),
            offset: moving.offset,
            intended: nanos(moving.due),
            start: asked,
            meter: units::nanos(moving.asked.since(moving.over)),
            kind: moving.transfer.kind,
            random: moving.transfer.random,
            ..Record::default()
        };
        self.log.keep(&match arrived {
            None => record,
            Some(arrived) => Record {
                first: arrived.first.map_or(NONE, nanos),
                end: nanos(arrived.at),
                open: units::nanos(arrived.open),
                close: units::nanos(arrived.close),
                errno: errno(&arrived.result),
                ..record
            },
        });
    }

    fn outcome(mut self, complete: bool) -> TransfersOutcome {
        for client in 0..self.plan.clients {
            if let TransferClient::Moves(moving) = self.clients[index(client)].clone() {
                self.outcome.unfinished += 1;
                // The log has the blocks that never came, too.
                self.keep(client, &moving, None);
            }
        }
        TransfersOutcome {
            took: self.port.now().since(self.origin),
            complete,
            method: self.port.method(),
            ..self.outcome
        }
    }
}

fn key(transfer: &DrawnTransfer) -> TransferRowKey {
    TransferRowKey { kind: transfer.kind, random: transfer.random, block: transfer.block }
}

/// Seconds that msMeter takes to fill a byte of its buffer, by the port's clock: one `rand()` for
/// each byte.
fn fill_of_a_byte(port: &dyn Port) -> f64 {
    let mut rand = super::Glibc::new(1);
    let began = port.now();
    let sum = (0..SAMPLE).fold(0u32, |sum, _| sum.wrapping_add(rand.roll() & 0xff));
    // Otherwise the compiler removes a loop whose result is not used.
    std::hint::black_box(sum);
    port.now().since(began).as_secs_f64() / f64::from(SAMPLE)
}

/// The sample in bytes: it takes a few milliseconds, long enough to be measured.
const SAMPLE: u32 = 1 << 20;

/// The longest wait for transfers in progress, from the end of the run or from the last completion:
/// a longer silence means that the storage hangs.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

const AFTER_A_FAILURE: Duration = Duration::from_millis(100);
