//! Reads with a cursor find the same rows as reads from the start.

use flotilla_engine::store::MemoryStore;
use flotilla_engine::view::{
    DueCursor, DueSchedules, DueTimers, DueTriggers, KeyCursor, TimerCursor,
};
use flotilla_engine::{Applied, Effect};

/// The cursors of the leader's drivers.
#[derive(Debug, Default)]
pub(super) struct Cursors {
    timers: TimerCursor,
    schedules: DueCursor,
    triggers: DueCursor,
    keys: KeyCursor,
}

/// What the cursors find: of keys, when the first expired.
type Found = (DueTimers, DueSchedules, DueTriggers, Option<u64>);

impl Cursors {
    /// Reads after an entry, as drivers do that have heard of all its effects.
    pub(super) fn expect_to_miss_nothing(&mut self, store: &MemoryStore, applied: &Applied) {
        for effect in &applied.effects {
            if let Effect::ArmSchedule { due_ms } = effect {
                self.schedules.lower(*due_ms);
            } else if let Effect::ArmTrigger { due_ms } = effect {
                self.triggers.lower(*due_ms);
            }
        }
        let read_on = self.read(store, applied.now_ms);
        assert_eq!(read_on, Self::default().read(store, applied.now_ms));
    }

    fn read(&mut self, store: &MemoryStore, now_ms: u64) -> Found {
        let found = "memory does not fail";
        (
            self.timers.due_timers(store, now_ms, 2).expect(found),
            self.schedules.due_schedules(store, now_ms, 2).expect(found),
            self.triggers.due_triggers(store, now_ms, 2).expect(found),
            self.keys.first_expired_ms(store).expect(found),
        )
    }
}
