use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use chrono::{DateTime, Utc};

use super::account::Accounts;
use super::digest::Digest;
use super::document::{JOB_FILE, Keys, MAIN_FILE, Section, Source, Taken, Trust, parse, take};
use super::doubts::{Outputs, doubts};
use super::jobs_folder::{self, FOLDER};
use super::loaded::Loaded;
use super::main_file::{MainFile, read_jobs};
use super::meaning::{self, Base};
use super::problem::{Problem, Scope};
use super::settings::Settings;
use super::ticking::{InWords, Roster};
use super::typed_job::{NamedJob, TypedJob};
use super::{ticking, warning};
use crate::job::Job;

/// Reads the main file and the files of `jobs.d` beside it, and tells all that is wrong with them.
///
/// It blocks on the disk, a few milliseconds for hundreds of files. It never fails:
/// [`Loaded::is_usable`] says whether there is enough to run with.
pub fn load(path: &Path) -> Loaded {
    Loading::new().load(path)
}

/// As [`load`], and refuses jobs that a daemon which runs as this process does must not, or can't, start as
/// their keys say: as root those without `user`, as anybody else those of other users and groups.
///
/// For the latter it asks the name service, two seconds at most if that hangs.
pub fn load_to_run(path: &Path) -> Loaded {
    Loading { purpose: Purpose::Run, ..Loading::new() }.load(path)
}

/// As [`load`], and looks around on this host: whether the password file is fit, and, as warnings,
/// whether programs, folders and users are there.
///
/// A daemon doesn't do that: what its jobs need may lie on a disk that hangs, or come later.
pub fn check(path: &Path) -> Loaded {
    Loading { purpose: Purpose::LookAround, ..Loading::new() }.load(path)
}

/// Reads a text as if it were a file of `jobs.d`, under the built-in settings and without `[defaults]`.
pub fn load_jobs(name: &Path, text: String) -> Loaded {
    Loading::new().load_jobs(name, text)
}

/// One loading under way.
#[derive(Default)]
struct Loading {
    root: bool,
    purpose: Purpose,
    now: DateTime<Utc>,
    /// In the order of reading, the main file first.
    files: Vec<FileRead>,
    /// What is not valid TOML.
    syntax: Vec<Problem>,
    /// All else; some of it may rest on text that is not valid TOML.
    problems: Vec<Problem>,
    /// All jobs by name, those of refused files too.
    roster: Roster,
    /// With the number of their file.
    jobs: Vec<(usize, Job, Digest)>,
    warnings: Vec<Problem>,
    /// With the number of their file.
    words: Vec<(usize, InWords)>,
    locks: warning::Locks,
    outputs: Outputs,
    accounts: Accounts,
}

/// What the files are read for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Purpose {
    /// What they say.
    #[default]
    Read,
    /// To start their jobs as this process.
    Run,
    /// A check-up: this host is looked at, and warnings are wanted.
    LookAround,
}

/// A file that was read, or could not be.
struct FileRead {
    path: PathBuf,
    scope: Scope,
    /// How far it can be believed; `None` if there is no text.
    trust: Option<Trust>,
}

impl FileRead {
    fn is_whole(&self) -> bool {
        self.trust.as_ref().is_some_and(Trust::is_whole)
    }
}

impl Loading {
    fn new() -> Self {
        Self { root: rustix::process::geteuid().is_root(), now: Utc::now(), ..Self::default() }
    }

    fn load(mut self, path: &Path) -> Loaded {
        let main = self.read(path, Scope::Settings, &MAIN_FILE, |loading, top, jobs| {
            let main = MainFile::read(top);
            read_jobs(top, jobs, |job| loading.take_in(job, &main.base));
            main
        });
        let Some(main) = main else {
            // A wrong path, as a rule: without its defaults the job files would only give noise.
            return self.finish(None);
        };
        if self.purpose == Purpose::LookAround {
            self.problems.extend(warning::unfit_password_file(&main.password_file));
        }
        let folder = path.with_file_name(FOLDER);
        let (job_files, problems) = jobs_folder::list(&folder, self.root);
        self.problems.extend(problems);
        for file in job_files {
            let scope = Scope::JobFile(file.clone());
            self.read(&file, scope, &JOB_FILE, |loading, top, jobs| {
                read_jobs(top, jobs, |job| loading.take_in(job, &main.base));
            });
        }
        self.judge_together(path, &folder);
        self.finish(main.settings)
    }

    fn load_jobs(mut self, name: &Path, text: String) -> Loaded {
        let scope = Scope::JobFile(name.to_owned());
        let source = Source::of_text(name, scope.clone(), text);
        let base = Base::default();
        self.files.push(FileRead { path: name.to_owned(), scope, trust: None });
        self.read_source(&source, &JOB_FILE, |loading, top, jobs| {
            read_jobs(top, jobs, |job| loading.take_in(job, &base));
        });
        self.problems.extend(self.roster.problems(true));
        self.finish(None)
    }

    /// Reads one file, its jobs taken out; `None` if it has no readable text.
    fn read<T>(
        &mut self,
        path: &Path,
        scope: Scope,
        keys: &'static Keys,
        read: impl FnOnce(&mut Self, &mut Section<'_>, Option<Taken<'_>>) -> T,
    ) -> Option<T> {
        let (source, problems) = Source::read(path, scope.clone(), self.root);
        self.problems.extend(problems);
        self.files.push(FileRead { path: path.to_owned(), scope, trust: None });
        Some(self.read_source(&source?, keys, read))
    }

    /// Reads the text of the newest file.
    fn read_source<T>(
        &mut self,
        source: &Rc<Source>,
        keys: &'static Keys,
        read: impl FnOnce(&mut Self, &mut Section<'_>, Option<Taken<'_>>) -> T,
    ) -> T {
        let (mut table, trust, syntax) = parse(source);
        let jobs = take(&mut table, "jobs");
        self.syntax.extend(syntax);
        if let Some(file) = self.files.last_mut() {
            file.trust = Some(trust);
        }
        let mut top = Section::top(source, &table, keys);
        let answer = read(self, &mut top, jobs);
        self.problems.extend(top.finish());
        answer
    }

    /// Makes one job of the file that is being read.
    fn take_in(&mut self, job: &NamedJob, base: &Base) {
        let keys = job.keys.over(&base.defaults);
        self.problems.extend(self.roster.add(job, &keys));
        if self.purpose == Purpose::Run {
            self.problems.extend(self.accounts.refusals(job, &keys));
        }
        match meaning::of(job, &keys, base, self.now) {
            Ok((made, digest)) => {
                let file = self.files.len() - 1;
                if self.purpose == Purpose::LookAround {
                    self.look_around(file, job, &keys, &made);
                }
                self.jobs.push((file, made, digest));
            }
            Err(problems) => self.problems.extend(problems),
        }
    }

    fn look_around(&mut self, file: usize, job: &NamedJob, keys: &TypedJob, made: &Job) {
        self.warnings.extend(warning::of_job(keys));
        self.warnings.extend(self.accounts.doubts(job, keys));
        self.warnings.extend(ticking::doubts(made, &job.place, keys, self.now));
        self.warnings.extend(doubts(made, keys));
        let output = keys.output.to.typed();
        self.warnings.extend(output.and_then(|output| self.outputs.add(made, &output.place)));
        let lock = keys.lock.typed().map_or(&job.place, |lock| &lock.place);
        self.warnings.extend(self.locks.add(made, lock));
        self.words.push((file, InWords::of(made, &job.place, &keys.ticking)));
    }

    /// What can only be judged when all files have been read.
    fn judge_together(&mut self, main: &Path, folder: &Path) {
        let all_are_known = self.files.iter().all(FileRead::is_whole);
        self.problems.extend(self.roster.problems(all_are_known));
        if self.purpose == Purpose::LookAround {
            self.warnings.extend(self.roster.doubts());
        }
        self.require_a_job(main, folder);
    }

    fn require_a_job(&mut self, main: &Path, folder: &Path) {
        let of_jobs = |problem: &Problem| {
            problem.scope != Scope::Settings || problem.key.as_ref().is_some_and(|key| key.starts_with("jobs"))
        };
        if self.roster.is_empty() && self.syntax.is_empty() && !self.problems.iter().any(of_jobs) {
            let remedy = format!(
                "write [jobs.NAME] with schedule and command, here or in {}",
                folder.join("NAME.toml").display()
            );
            self.problems.push(Problem::of_file(Scope::Settings, main.to_owned(), "no job is defined", remedy));
        }
    }

    fn finish(self, settings: Option<Settings>) -> Loaded {
        let Self { files, syntax, problems, jobs, warnings, words, .. } = self;
        let main_is_whole = files.first().is_some_and(FileRead::is_whole);
        let numbers: HashMap<&Path, usize> = if syntax.is_empty() && problems.is_empty() && warnings.is_empty() {
            HashMap::new()
        } else {
            files.iter().enumerate().map(|(number, file)| (file.path.as_path(), number)).collect()
        };
        let number = |problem: &Problem| numbers.get(problem.file.as_path()).copied();
        let can_be_believed = |problem: &Problem| {
            let trust = number(problem).and_then(|number| files[number].trust.as_ref());
            trust.is_none_or(|trust| trust.covers(problem)) && (main_is_whole || !problem.rests_on_others)
        };
        let in_order = |found: &mut Vec<Problem>| found.sort_by_cached_key(|one| (number(one), one.position));
        let mut problems = once_each(syntax.into_iter().chain(problems.into_iter().filter(can_be_believed)));
        in_order(&mut problems);
        let mut warnings = once_each(warnings);
        in_order(&mut warnings);
        let refused = refused(&files, &problems);
        let jobs = jobs.into_iter().filter(|(file, ..)| !refused[*file]).map(|(_, job, digest)| (job, digest));
        let words = words.into_iter().filter(|(file, _)| !refused[*file]).map(|(_, words)| words);
        Loaded::new(settings.filter(|_| main_is_whole), jobs.collect(), problems).checked(warnings, words.collect())
    }
}

/// Which files the problems put out of use.
fn refused(files: &[FileRead], problems: &[Problem]) -> Vec<bool> {
    if problems.is_empty() {
        return vec![false; files.len()];
    }
    let mut scopes: HashSet<&Scope> = problems.iter().map(|problem| &problem.scope).collect();
    let own: Vec<bool> = files.iter().map(|file| scopes.contains(&file.scope)).collect();
    // What is left, as the folder, is no file's own and holds several.
    files.iter().for_each(|file| {
        scopes.remove(&file.scope);
    });
    files.iter().zip(own).map(|(file, own)| own || scopes.iter().any(|scope| scope.holds(&file.scope))).collect()
}

/// A fault in `[defaults]` comes up once for every job.
fn once_each(found: impl IntoIterator<Item = Problem>) -> Vec<Problem> {
    let mut told = HashSet::new();
    let found = found.into_iter();
    found.filter(|problem| told.insert(problem.clone())).collect()
}
