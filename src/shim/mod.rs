//! Floor 4: the processes between daemon and job. No SQL; the only place that starts processes, and the
//! only one with `unsafe`.
//!
//! ```text
//! daemon ----- fork server            one thread, executed once at the daemon's start, reaper of shims
//!    |              |
//!    +-- channel -- shim              one a run at a time, one thread, reaper of the job's tree
//!                   |
//!                   job's process     prepares itself (user, limits, directory, ..), then executes the program
//!                   +-- its tree
//! ```
//!
//! [`Spawner::spawn`] takes a [`SpawnRequest`] with an absolute deadline and gives a [`Child`]: what happens to
//! it, its output, [`Child::move_deadline`], [`Child::terminate`], [`Child::kill`].
//!
//! It guarantees that
//! - a run has ended only when no process of its tree is left, sessions of their own and double forks
//!   included ([`ChildEvent::Ended`]);
//! - the tree is gone before its deadline, TERM `kill_grace` earlier, also when the daemon is killed or stopped, the
//!   machine sleeps, or the fork server dies: the shim acts by itself. When its channel closes it ends the tree;
//! - a shim that was killed leaves its tree to the fork server, which kills it;
//! - what was not executed is said so, with the cause; user names, directories, files of the job's user are touched
//!   in its own process, which may hang there without harm.
//!
//! It does *not* cover: processes in uninterruptible sleep (their tree has not ended until they have), a machine that
//! is frozen, set-user-id children of an unprivileged daemon, work that a job hands to another daemon (docker, at,
//! systemd-run), and a fork server and a shim that are both killed or stopped.

mod cgroup;
mod child;
mod executable;
mod fork;
mod fork_server;
mod guard;
mod launch;
mod link;
mod passwd;
mod pool;
mod server;
mod signals;
mod socket;
mod spawner;
mod tree;
mod wire;
mod writer;

pub use child::{Child, ChildEvent, Output};
pub use executable::{Executable, enter};
pub use passwd::{User, current_user};
pub use spawner::{SpawnError, Spawner};
pub use wire::{Ended, Exit, OwnStop, Program, SpawnRequest, Survivors};
