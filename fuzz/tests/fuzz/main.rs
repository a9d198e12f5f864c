//! What must hold for every input, tested with the corpora and with mutations of them; and proof that
//! faults are found and reported.

mod made;
mod planted;
mod targets;
