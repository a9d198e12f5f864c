//! Replicated puts on etcd.

mod messages;

use crate::closed_loop::{Caller, Pace};
use crate::fault::Fault;
use crate::report::{Report, Verified};
use bytes::Bytes;
use clap::Args;
use messages::{
    PutRequest, PutResponse, RangeRequest, RangeResponse, StatusRequest, StatusResponse,
};
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;

/// How long a call may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long a cluster may take until it serves.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a starting cluster is polled.
const INTERVAL: Duration = Duration::from_millis(100);
/// The prefix of all keys.
const PREFIX: &[u8] = b"flo-bench/";
/// The end of the range of all keys.
const PREFIX_END: &[u8] = b"flo-bench0";

/// Measure puts on etcd, in a closed loop
///
/// Keys are random. The cluster's revision and its number of keys are read before and after the load, and
/// each acknowledged put must show in both.
#[derive(Debug, Args)]
pub(crate) struct Etcd {
    /// The members, as URLs; clients are spread over them
    #[arg(long, value_name = "URL", value_delimiter = ',', required = true)]
    endpoints: Vec<String>,

    /// Call only the leader
    #[arg(long)]
    leader: bool,

    /// How long a value is
    #[arg(long, value_name = "BYTES", default_value_t = 256)]
    value_bytes: u16,

    #[command(flatten)]
    pace: Pace,
}

impl Etcd {
    /// Measures and prints.
    ///
    /// # Errors
    /// If no member answers, no put succeeded, or an acknowledged put is missing.
    pub(crate) async fn run(self) -> Result<(), Fault> {
        let mut members = self.members().await?;
        if self.leader {
            members = leader(members).await?;
        }
        let value = Bytes::from(vec![b'v'; self.value_bytes.into()]);
        let client = |member: &Member| Client {
            member: member.clone(),
            value: value.clone(),
        };
        let clients = members.iter().cycle().take(self.pace.clients_count());
        let clients = clients.map(client).collect();

        let before = members[0].clone().stand().await?;
        let measured = self.pace.run(clients).await;
        let after = members[0].clone().stand().await?;
        after.expect_puts(before, measured.succeeded, measured.errors)?;
        let verified = Verified {
            count: measured.succeeded,
            by: "the cluster's revision and its number of keys",
        };
        Report::new("puts", self.pace.clients_count(), &measured, verified).print()
    }

    /// One connection to each member, once all of them serve. More connections are slower, because the
    /// members spend more on each.
    async fn members(&self) -> Result<Vec<Member>, Fault> {
        let deadline = Instant::now() + STARTUP_TIMEOUT;
        let mut members = Vec::new();
        for endpoint in &self.endpoints {
            let endpoint = Endpoint::from_shared(endpoint.clone())?.timeout(TIMEOUT);
            let mut member = Member::new(endpoint.connect_lazy());
            while let Err(fault) = member.stand().await {
                if Instant::now() >= deadline {
                    return Err(Fault::new(format!(
                        "{} does not serve: {fault}",
                        endpoint.uri()
                    )));
                }
                sleep(INTERVAL).await;
            }
            members.push(member);
        }
        Ok(members)
    }
}

/// The leader among the members.
async fn leader(members: Vec<Member>) -> Result<Vec<Member>, Fault> {
    for mut member in members {
        let status = member.status().await?;
        if status.is_leader() {
            return Ok(vec![member]);
        }
    }
    Err(Fault::new(
        "expected one of the members to lead, but none does",
    ))
}

/// One connection to a member.
#[derive(Clone)]
struct Member {
    grpc: Grpc<Channel>,
}

impl Member {
    fn new(channel: Channel) -> Self {
        Self {
            grpc: Grpc::new(channel),
        }
    }

    async fn put(&mut self, request: PutRequest) -> Result<PutResponse, Fault> {
        self.call(request, "/etcdserverpb.KV/Put").await
    }

    async fn stand(&mut self) -> Result<Stand, Fault> {
        let request = RangeRequest {
            key: Bytes::from_static(PREFIX),
            range_end: Bytes::from_static(PREFIX_END),
            count_only: true,
        };
        let response: RangeResponse = self.call(request, "/etcdserverpb.KV/Range").await?;
        let header = response.header.unwrap_or_default();
        Ok(Stand {
            revision: header.revision,
            keys: response.count,
        })
    }

    async fn status(&mut self) -> Result<StatusResponse, Fault> {
        let path = "/etcdserverpb.Maintenance/Status";
        self.call(StatusRequest {}, path).await
    }

    async fn call<M, R>(&mut self, message: M, path: &'static str) -> Result<R, Fault>
    where
        M: prost::Message + Send + Sync + 'static,
        R: prost::Message + Default + Send + Sync + 'static,
    {
        self.grpc.ready().await?;
        let request = tonic::Request::new(message);
        let path = PathAndQuery::from_static(path);
        let codec = ProstCodec::<M, R>::default();
        Ok(self.grpc.unary(request, path, codec).await?.into_inner())
    }
}

/// The progress of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stand {
    revision: i64,
    keys: i64,
}

impl Stand {
    /// A failed put may still have been done.
    fn expect_puts(self, before: Self, succeeded: u64, failed: u64) -> Result<(), Fault> {
        let at_least = i64::try_from(succeeded)?;
        let at_most = at_least + i64::try_from(failed)?;
        let revisions = self.revision - before.revision;
        let keys = self.keys - before.keys;
        let is_right = |found: i64| (at_least..=at_most).contains(&found);
        if is_right(revisions) && is_right(keys) {
            return Ok(());
        }
        Err(Fault::new(format!(
            "expected {succeeded} puts (and {failed} in doubt), but the cluster is {revisions} revisions and \
             {keys} keys further"
        )))
    }
}

struct Client {
    member: Member,
    value: Bytes,
}

impl Caller for Client {
    async fn call(&mut self) -> Result<(), Fault> {
        let key = [PREFIX, &rand::random::<[u8; 16]>()].concat();
        let request = PutRequest {
            key: key.into(),
            value: self.value.clone(),
        };
        self.member.put(request).await.map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(revision: i64, keys: i64) -> Result<(), Fault> {
        let before = Stand {
            revision: 1,
            keys: 0,
        };
        Stand { revision, keys }.expect_puts(before, 10, 2)
    }

    #[test]
    fn each_acknowledged_put_shows_and_those_in_doubt_may() {
        assert_eq!(check(11, 10), Ok(()));
        assert_eq!(check(13, 12), Ok(()));
        for (revision, keys) in [(10, 10), (11, 9), (14, 12)] {
            assert!(check(revision, keys).is_err(), "{revision} {keys}");
        }
    }

    #[test]
    fn the_end_of_the_prefix_is_the_next_byte() {
        let (last, start) = PREFIX.split_last().unwrap();
        let (last_end, start_end) = PREFIX_END.split_last().unwrap();
        assert_eq!((start, last + 1), (start_end, *last_end));
    }
}
