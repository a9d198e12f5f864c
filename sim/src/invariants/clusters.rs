//! Two clusters at the same addresses share no worker stream, no task and no completion (R-H1).

use crate::record::Events;

pub(crate) fn check(events: &Events) -> Vec<String> {
    let streams = events.member_streams.iter();
    let crossed = streams.filter(|(member, leader)| member.cluster != leader.cluster);
    let mut broken: Vec<String> = crossed
        .map(|(member, leader)| {
            format!(
                "expected {leader} to serve workers of that cluster only, but it serves {member}"
            )
        })
        .collect();
    for (verb, tasks) in [
        ("begun", &events.member_began),
        ("completed", &events.member_completed),
    ] {
        for (token, member) in tasks {
            let assigned = events.assigned_in.get(token);
            let is_own = assigned.is_some_and(|known| known.iter().eq([&member.cluster]));
            if !is_own {
                broken.push(format!(
                    "expected {token} to be {verb} in its own cluster only, but {member} did it, and it is a task of {assigned:?}"
                ));
            }
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Cluster, Member};
    use flotilla_engine::TaskToken;
    use flotilla_engine::ids::ActionRunNumber;

    const OLD: Member = Member {
        host: 2,
        cluster: Cluster::Old,
    };
    const NEW: Member = Member {
        host: 1,
        cluster: Cluster::New,
    };
    const TOKEN: TaskToken = TaskToken {
        action_run: ActionRunNumber(1),
        attempt: 1,
        secret: 11,
    };

    #[test]
    fn a_stream_between_two_clusters_is_found() {
        let mut events = Events::default();
        events.member_streams.insert((NEW, NEW));
        assert_eq!(check(&events).len(), 0);
        events.member_streams.insert((OLD, NEW));
        assert_eq!(check(&events).len(), 1);
    }

    #[test]
    fn a_task_and_a_completion_in_the_wrong_cluster_are_found() {
        let mut events = Events::default();
        events
            .assigned_in
            .entry(TOKEN)
            .or_default()
            .insert(Cluster::New);
        events.member_began.insert((TOKEN, NEW));
        events.member_completed.insert((TOKEN, NEW));
        assert_eq!(check(&events).len(), 0);
        events.member_began.insert((TOKEN, OLD));
        assert_eq!(check(&events).len(), 1);
        events.member_completed.insert((TOKEN, OLD));
        assert_eq!(check(&events).len(), 2);
    }
}
