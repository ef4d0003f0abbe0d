//! What becomes of the bytes that a job writes.
//!
//! - A *block* is some whole lines of one stream as they were read: at most 32 KiB. [`lines::Buffer`]
//!   cuts them, in bounded memory; a line that is longer than 16 KiB is cut, between two characters.
//! - The *tail* is the end of all blocks, for the row; it is kept wherever the output goes.
//! - A *sink* takes the blocks: the log, line by line, or the process that writes the job's files.
//!
//! Memory is bounded, and the daemon never waits; who writes faster than the sink takes it is first held
//! up and then loses output, which is counted and told once a second (`run.output_dropped`):
//!
//! - the log holds a job up by two seconds at once and by a tenth of its time for good
//!   ([`patience::Patience`]), whether it is slow or stands still. Then a second of output is dropped as
//!   a whole, so that a log has few gaps instead of many. That bounds what a flood takes of the
//!   processor, too. Another run's lines find room again at once, and events have their own.
//! - the writer of files holds a job up as `>> file` would, as long as it takes anything within ten
//!   seconds; then all is dropped until it takes something again.
//!
//! What is *not* promised: the order of lines of two streams that were written at the same moment.

mod file;
mod lines;
mod log;
mod losses;
mod patience;
mod printable;
mod sink;
mod tail;

pub(super) use file::FileOutput;
pub(super) use lines::Buffer;
pub(super) use sink::Sink;
pub(super) use tail::Tail;
