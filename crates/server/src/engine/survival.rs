//! The decision where newcomers must survive the loss of any one disk: the same policy, asked for each
//! loss that the newcomer makes worse (see [`scheduler::Failover`]).

use super::Engine;
use super::standby::EARLY;
use super::sweeps::Chosen;
use scheduler::admission::Policy;
use scheduler::{Demand, Placed, Slack, Standing, Survival};
use units::Moment;

impl Engine {
    /// Asks `policy` about `demand` on `disk`, with the spare at hand, if the disk first does
    /// something else for `work` nanoseconds. A yes leaves its plan as the proposal.
    pub(super) fn survival(
        &mut self,
        disk: usize,
        policy: &dyn Policy,
        demand: &Demand,
        work: u64,
    ) -> Survival {
        let droppable = |at| if self.plans(at) { self.droppable(at) } else { Vec::new() };
        let back: Vec<Vec<Chosen>> = (0..self.disks.len()).map(droppable).collect();
        for (state, back) in self.disks.iter_mut().zip(&back) {
            back.iter().for_each(|chosen| state.books.put_back(chosen.piece));
        }
        let mut at_spare = demand.clone();
        at_spare.shift(u64::from(EARLY));
        // As the standby books have it.
        at_spare.forget_visits();
        let newcomer = Placed {
            home: disk,
            at_home: demand,
            spare: self.spare.map(|spare| (spare, &at_spare)),
        };
        let mut proposal = std::mem::take(&mut self.disks[disk].sweeps.proposal);
        let standing = self.disks.iter().zip(&back).enumerate().map(|(number, (state, back))| {
            let work = if number == disk { work } else { 0 };
            let free_at = Moment(state.free_at(self.now, back).0.saturating_add(work));
            Standing { books: &state.books, supply: state.supply(free_at), lost: state.lost }
        });
        let standing: Vec<Standing<'_>> = standing.collect();
        let failover = self.standby.failover().expect("asked only where it is wanted");
        let answer = failover.verdict(policy, &standing, newcomer, &mut proposal);
        drop(standing);
        let sweeps = &mut self.disks[disk].sweeps;
        sweeps.proposal = proposal;
        sweeps.proposed = match answer {
            Survival::Admit { slack: Slack::Time(slack) } => Some(slack),
            _ => None,
        };
        for (state, back) in self.disks.iter_mut().zip(&back) {
            back.iter().for_each(|chosen| state.books.take_up(chosen.piece));
        }
        self.disks[disk].sweeps.back = back[disk].iter().map(|chosen| chosen.read).collect();
        answer
    }
}
