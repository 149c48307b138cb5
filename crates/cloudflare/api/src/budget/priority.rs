//! A turn that several wait for together: it is asked for in the lane of the most urgent of them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::budget::governor::Lane;
use crate::budget::limiter::Permit;
use crate::call::error::ApiError;
use crate::call::sender::Sender;

/// The most urgent lane of those who wait. Without it, somebody in a hurry would wait behind a slow turn that was asked for
/// in a patient lane.
#[derive(Debug, Default)]
pub(crate) struct SharedPriority {
    lane: Mutex<Option<Lane>>,
    raised: Notify,
}

impl SharedPriority {
    /// Somebody waits in this lane.
    pub(crate) fn raise(&self, lane: Lane) {
        let mut most = self.lane();
        if most.is_none_or(|most| lane < most) {
            *most = Some(lane);
            self.raised.notify_one();
        }
    }

    /// Nobody waits any more.
    pub(crate) fn settle(&self) {
        *self.lane() = None;
    }

    /// Waits for a turn, at least in `lane`, in a more urgent one as soon as somebody needs it.
    pub(crate) async fn permit(&self, sender: &Sender, lane: Lane) -> Result<(Lane, Permit), ApiError> {
        loop {
            let most = self.lane().map_or(lane, |most| most.min(lane));
            tokio::select! {
                biased;
                permit = sender.permit(most) => return permit.map(|permit| (most, permit)),
                () = self.raised.notified() => {}
            }
        }
    }

    fn lane(&self) -> MutexGuard<'_, Option<Lane>> {
        self.lane.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
