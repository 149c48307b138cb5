//! A zone that a server shall have, and where it is to be fetched → the zone, open and complete: never open before it is complete.
//!
//! What the steps are and why stands in `src/responder/mod.rs`. They may be broken off anywhere and begun again: what they find is
//! told by the server itself, by how it shows the zone.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use super::{error::RndcError, rndc::RndcClient};
use crate::{
    message::DomainName,
    responder::ZoneSeed,
    rndc::{JournalFile, RndcRefusal, ZoneFiles, says_the_same},
    values::Serial,
};

/// A zone that is to be complete before it is open.
#[derive(Clone, Copy, Debug)]
pub struct Seeding<'a> {
    /// The zone.
    pub zone: &'a DomainName,
    /// Its statement while it is fetched: `{ type secondary; file F; allow-query { none; }; primaries { US key K; }; }`. F is a file that
    /// was never there: let its name have the zone's serial, or whatever else is another one for another seed.
    pub closed: &'a str,
    /// Its statement for good, of the same file: `{ type primary; file F; masterfile-format raw; … }`.
    pub open: &'a str,
    /// What our responder has of it.
    pub seed: &'a ZoneSeed,
    /// For all of it.
    pub limit: Duration,
}

/// Why a zone is not open. It is closed then, or not there, and the same may be tried again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SeedingError {
    /// A command failed.
    #[error(transparent)]
    Rndc(#[from] RndcError),
    /// The server has the zone, and neither as one that is being fetched nor as it is to be.
    #[error("the server has the zone {zone} in another way: {shown}")]
    OtherZone {
        /// The zone.
        zone: DomainName,
        /// How it has it.
        shown: String,
    },
    /// The server did not fetch the zone in time: perhaps it cannot reach the responder, or has another key.
    #[error("the server did not fetch the zone {zone} within {limit:?}: it must reach the responder, with its key")]
    NotFetched {
        /// The zone.
        zone: DomainName,
        /// How long was waited.
        limit: Duration,
    },
    /// The server found a file of an earlier life of the zone, or still has what an earlier seed said.
    #[error(
        "the server has the zone {zone} with the serial {has} from before, and is to have {wanted}: delete it, and use another file"
    )]
    OldFile {
        /// The zone.
        zone: DomainName,
        /// The serial that it has.
        has: Serial,
        /// The serial that it is to have.
        wanted: Serial,
    },
    /// The server fetched the zone, and did not write its file.
    #[error("the server has no file of the zone {zone}: its folder may be full, or not to be written")]
    NoFile {
        /// The zone.
        zone: DomainName,
    },
}

/// Between two looks at what is on its way, at first and at last.
const SOON: Duration = Duration::from_millis(10);
const SELDOM: Duration = Duration::from_millis(500);
/// How long a file may take to appear. A large zone's took a quarter of a second (`src/responder/mod.rs`).
const FILE: Duration = Duration::from_secs(10);

/// How the server has the zone.
enum Found {
    Closed,
    Open,
}

impl RndcClient {
    /// Has the server fetch a zone, and opens it once it is complete. A zone that is open already is left as it is.
    pub async fn open_seeded(&self, seeding: Seeding<'_>) -> Result<(), SeedingError> {
        portolan_core::waypoint!();
        let deadline = Instant::now() + seeding.limit;
        loop {
            match self.add_closed(seeding).await? {
                Found::Open => return Ok(()),
                Found::Closed => self.until_complete(seeding, deadline).await?,
            }
            // The file is written now, and by the time that it is looked for it is there, whatever became of the zone.
            self.sync(seeding.zone, JournalFile::Keep).await?;
            if let Err(error) = self.delete_zone(seeding.zone, ZoneFiles::Keep).await
                && error.refusal() != Some(RndcRefusal::ZoneNotFound)
            {
                return Err(error.into());
            }
            if self.add_open(seeding, deadline).await? {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(SeedingError::NoFile { zone: seeding.zone.clone() });
            }
        }
    }

    async fn add_closed(&self, seeding: Seeding<'_>) -> Result<Found, SeedingError> {
        match self.add_zone(seeding.zone, seeding.closed).await {
            Ok(()) => return Ok(Found::Closed),
            Err(error) if error.refusal() == Some(RndcRefusal::AlreadyExists) => {}
            Err(error) => return Err(error.into()),
        }
        let shown = self.show_zone(seeding.zone).await?;
        if says_the_same(&shown, seeding.open) {
            Ok(Found::Open)
        } else if says_the_same(&shown, seeding.closed) {
            Ok(Found::Closed)
        } else {
            Err(SeedingError::OtherZone { zone: seeding.zone.clone(), shown })
        }
    }

    /// A file of an earlier life is loaded at once. It would be there until the new one is, so that it could be opened instead: the zone is
    /// left as it is then.
    async fn until_complete(&self, seeding: Seeding<'_>, deadline: Instant) -> Result<(), SeedingError> {
        let (zone, wanted) = (seeding.zone.clone(), seeding.seed.soa.serial);
        let mut pause = SOON;
        loop {
            match self.zone_status(seeding.zone).await {
                Ok(status) if status.serial == Some(wanted) => return Ok(()),
                Ok(status) => {
                    let has = status.serial.unwrap_or(Serial(0));
                    return Err(SeedingError::OldFile { zone, has, wanted });
                }
                Err(error) if error.refusal() == Some(RndcRefusal::NotLoaded) => {}
                Err(error) => return Err(error.into()),
            }
            if Instant::now() >= deadline {
                return Err(SeedingError::NotFetched { zone, limit: seeding.limit });
            }
            // Whether it is fetched is known here first; only then is the server asked often.
            if timeout_at(deadline.min(Instant::now() + SELDOM), seeding.seed.until_fetched()).await.is_ok() {
                sleep(pause).await;
                pause = (pause * 2).min(SELDOM);
            }
        }
    }

    /// Whether the zone is open; else there is no file, and it is to be fetched again.
    async fn add_open(&self, seeding: Seeding<'_>, deadline: Instant) -> Result<bool, SeedingError> {
        let patience = deadline.min(Instant::now() + FILE);
        let mut pause = SOON;
        loop {
            match self.add_zone(seeding.zone, seeding.open).await {
                Ok(()) => return Ok(true),
                Err(error) if error.refusal() == Some(RndcRefusal::FileNotFound) => {}
                Err(error) => return Err(error.into()),
            }
            if Instant::now() >= patience {
                return Ok(false);
            }
            sleep(pause).await;
            pause = (pause * 2).min(SELDOM);
        }
    }
}
