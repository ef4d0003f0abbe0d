//! A job for the unit tests of this floor.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::job::schedule::Schedule;
use crate::job::{
    CatchUp, Command, Job, JobName, OnCrash, OnLeaseLost, OutputTo, Overlap, Placement, ProcessSetup, Retries,
    SuccessCodes,
};
use crate::lock::{LeaseTiming, Resource};

/// A job in UTC that is as it is meant unless the test says otherwise.
pub(super) fn job(schedule: &str) -> Job {
    Job {
        name: JobName::new("job").expect("a name"),
        description: None,
        enabled: true,
        schedule: Schedule::parse(schedule, chrono_tz::UTC).expect("a schedule"),
        start_delay: Duration::ZERO,
        after: Vec::new(),
        placement: Placement::default(),
        command: Command::Shell("true".to_owned()),
        resource: Resource::new("job:job").expect("a resource"),
        timing: LeaseTiming::new(Duration::from_secs(180), Duration::from_secs(30), Duration::from_secs(15))
            .expect("meets the rule"),
        overlap: Overlap::Skip,
        timeout: None,
        env: BTreeMap::new(),
        directory: None,
        process: ProcessSetup::default(),
        success_codes: SuccessCodes::default(),
        retries: Retries::default(),
        on_lease_lost: OnLeaseLost::default(),
        output: OutputTo::default(),
        notices: None,
        on_crash: OnCrash::Record,
        start_deadline: Duration::from_secs(60),
        catch_up: CatchUp::Latest,
        catch_up_max_age: Duration::from_secs(300),
    }
}
