//! The API server of a world, embedded or real → clients of its users and of the operator.

use std::sync::Arc;

use kube::Client;
use portolan_apiserver::ApiServer;
use tower::Layer as _;

use crate::failpoints::Failpoints;
use crate::real::RealServer;
use crate::rights::{Refusals, RoleIdentity};

/// The API server of a world.
pub(super) enum WorldServer {
    Embedded(ApiServer),
    Real(Arc<RealServer>),
}

impl WorldServer {
    /// A client of users, who may do everything.
    pub(super) fn users_client(&self) -> Client {
        match self {
            Self::Real(server) => server.client(),
            Self::Embedded(server) => Client::new(server.service(), "default"),
        }
    }

    /// A client of the operator, which has an account of its own and goes through its failpoints.
    pub(super) fn operators_client(
        &self,
        identity: &RoleIdentity,
        failpoints: &Failpoints,
        refusals: &Refusals,
    ) -> Client {
        match self {
            Self::Real(server) => server.client_as(identity, failpoints, refusals),
            Self::Embedded(server) => {
                let groups: Vec<&str> = identity.groups.iter().map(String::as_str).collect();
                Client::new(failpoints.layer(refusals.layer(server.service_as(&identity.user, &groups))), "default")
            }
        }
    }
}
