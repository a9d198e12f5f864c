//! What the tests of several modules share.

use flotilla_engine::ids::{ActionName, Namespace};
use flotilla_engine::{Admission, Body, Command, SetActionEnabled, SweepRequests};
