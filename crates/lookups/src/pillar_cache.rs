//! Resources that pillars keep open between readings, accessed through one trait.

use std::any::Any;
use std::cell::OnceCell;

/// Resources that a pillar keeps open during a session, such as loaded BPF programs.
pub trait PillarCache: Any {
    /// The cache itself, for a lookup by its type.
    fn as_any(&self) -> &dyn Any;

    /// The note of `--cost` on its backends.
    fn cost_note(&self) -> Option<String> {
        None
    }
}

/// The caches of all pillars that have requested theirs so far.
#[derive(Default)]
pub struct PillarCaches(OnceCell<Box<(Box<dyn PillarCache>, PillarCaches)>>);

impl PillarCaches {
    /// The cache of this type; the first call creates it.
    pub fn get<C: PillarCache + Default>(&self) -> &C {
        let mut caches = self;
        loop {
            let (cache, others) = &**caches.0.get_or_init(|| Box::new((Box::<C>::default(), PillarCaches::default())));
            if let Some(cache) = cache.as_any().downcast_ref() {
                return cache;
            }
            caches = others;
        }
    }

    /// The notes of `--cost` on all caches.
    pub fn cost_notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let mut caches = self;
        while let Some((cache, others)) = caches.0.get().map(|link| &**link) {
            notes.extend(cache.cost_note());
            caches = others;
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[derive(Default)]
    struct Noted(Cell<u8>);

    impl PillarCache for Noted {
        fn as_any(&self) -> &dyn Any {
            self
        }

        fn cost_note(&self) -> Option<String> {
            Some(self.0.get().to_string())
        }
    }

    #[derive(Default)]
    struct Silent(Cell<u8>);

    impl PillarCache for Silent {
        fn as_any(&self) -> &dyn Any {
            self
        }
    }

    #[test]
    fn each_type_has_one_cache() {
        let caches = PillarCaches::default();
        assert!(caches.cost_notes().is_empty());
        caches.get::<Silent>().0.set(3);
        caches.get::<Noted>().0.set(7);
        assert_eq!((caches.get::<Silent>().0.get(), caches.get::<Noted>().0.get()), (3, 7));
        assert_eq!(caches.cost_notes(), ["7"]);
    }
}
