use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use chrono::{DateTime, Utc};

use super::digest::Digest;
use super::document::{JOB_FILE, Keys, MAIN_FILE, Place, Section, Source, Trust, parse};
use super::jobs_folder::{self, FOLDER};
use super::loaded::Loaded;
use super::main_file::{MainFile, read_jobs};
use super::meaning::{self, Base};
use super::problem::{Problem, Scope};
use super::settings::Settings;
use super::typed_job::NamedJob;
use super::warning;
use crate::job::{Job, JobName};

/// Reads the main file and the files of `jobs.d` beside it, and tells all that is wrong with them.
///
/// It blocks on the disk, a few milliseconds for hundreds of files. It never fails:
/// [`Loaded::is_usable`] says whether there is enough to run with.
pub fn load(path: &Path) -> Loaded {
    Loading::new().load(path)
}

/// As [`load`], and looks around on this host: whether the password file is fit, and, as warnings,
/// whether programs and folders are there.
///
/// A daemon doesn't do that: what its jobs need may lie on a disk that hangs, or come later.
pub fn check(path: &Path) -> Loaded {
    Loading { looks_around: true, ..Loading::new() }.load(path)
}

/// Reads a text as if it were a file of `jobs.d`, under the built-in settings and without `[defaults]`.
pub fn load_jobs(name: &Path, text: String) -> Loaded {
    Loading::new().load_jobs(name, text)
}

/// One loading under way.
#[derive(Default)]
struct Loading {
    root: bool,
    /// Whether this host's files are looked at, and warnings are wanted.
    looks_around: bool,
    now: DateTime<Utc>,
    /// In the order of reading, the main file first, and how far each can be believed.
    files: Vec<(PathBuf, Trust)>,
    /// What is not valid TOML.
    syntax: Vec<Problem>,
    /// All else; some of it may rest on text that is not valid TOML.
    problems: Vec<Problem>,
    /// Where the first job of each name stands.
    names: BTreeMap<JobName, Place>,
    jobs: Vec<(Scope, Job, Digest)>,
    warnings: Vec<Problem>,
    locks: warning::Locks,
}

impl Loading {
    fn new() -> Self {
        Self { root: rustix::process::geteuid().is_root(), now: Utc::now(), ..Self::default() }
    }

    fn load(mut self, path: &Path) -> Loaded {
        let Some(main) = self.read(path, Scope::Settings, &MAIN_FILE, MainFile::read) else {
            // A wrong path, as a rule: without its defaults the job files would only give noise.
            return self.finish(None);
        };
        if self.looks_around {
            self.problems.extend(warning::unfit_password_file(&main.password_file));
        }
        self.take_in(&Scope::Settings, &main.jobs, &main.base);
        let folder = path.with_file_name(FOLDER);
        let (job_files, problems) = jobs_folder::list(&folder, self.root);
        self.problems.extend(problems);
        for file in job_files {
            let scope = Scope::JobFile(file.clone());
            let jobs = self.read(&file, scope.clone(), &JOB_FILE, read_jobs).unwrap_or_default();
            self.take_in(&scope, &jobs, &main.base);
        }
        self.require_a_job(path, &folder);
        self.finish(main.settings)
    }

    fn load_jobs(mut self, name: &Path, text: String) -> Loaded {
        let scope = Scope::JobFile(name.to_owned());
        let source = Source::of_text(name, scope.clone(), text);
        let jobs = self.read_source(&source, &JOB_FILE, read_jobs);
        self.take_in(&scope, &jobs, &Base::default());
        self.finish(None)
    }

    /// Reads one file; `None` if it has no readable text.
    fn read<T>(
        &mut self,
        path: &Path,
        scope: Scope,
        keys: &'static Keys,
        read: impl FnOnce(&mut Section<'_>) -> T,
    ) -> Option<T> {
        let (source, problems) = Source::read(path, scope, self.root);
        self.problems.extend(problems);
        let Some(source) = source else {
            self.files.push((path.to_owned(), Trust::default()));
            return None;
        };
        Some(self.read_source(&source, keys, read))
    }

    fn read_source<T>(
        &mut self,
        source: &Rc<Source>,
        keys: &'static Keys,
        read: impl FnOnce(&mut Section<'_>) -> T,
    ) -> T {
        let (table, trust, syntax) = parse(source);
        self.syntax.extend(syntax);
        self.files.push((source.path.clone(), trust));
        let mut top = Section::top(source, &table, keys);
        let answer = read(&mut top);
        self.problems.extend(top.finish());
        answer
    }

    /// Makes the jobs of one file. Of two jobs with one name the one that is read later is wrong: so
    /// a stray copy disables itself, not the file that has been in use.
    fn take_in(&mut self, scope: &Scope, jobs: &[NamedJob], base: &Base) {
        for job in jobs {
            if let Some(first) = self.names.get(&job.name) {
                let wrong = format!("a job of this name is also at {}", first.file_and_line());
                self.problems.push(job.place.problem(wrong, "rename or remove one of the two"));
            } else {
                self.names.insert(job.name.clone(), job.place.clone());
            }
            match meaning::of(job, base, self.now) {
                Ok((made, digest)) => {
                    if self.looks_around {
                        let keys = job.keys.over(&base.defaults);
                        self.warnings.extend(warning::of_job(&keys));
                        self.warnings.extend(self.locks.add(&made, keys.lock.typed().map_or(&job.place, |t| &t.place)));
                    }
                    self.jobs.push((scope.clone(), made, digest));
                }
                Err(problems) => self.problems.extend(problems),
            }
        }
    }

    fn require_a_job(&mut self, main: &Path, folder: &Path) {
        let of_jobs = |problem: &Problem| {
            problem.scope != Scope::Settings || problem.key.as_ref().is_some_and(|key| key.starts_with("jobs"))
        };
        if self.names.is_empty() && self.syntax.is_empty() && !self.problems.iter().any(of_jobs) {
            let remedy = format!(
                "write [jobs.NAME] with schedule and command, here or in {}",
                folder.join("NAME.toml").display()
            );
            self.problems.push(Problem::of_file(Scope::Settings, main.to_owned(), "no job is defined", remedy));
        }
    }

    fn finish(mut self, settings: Option<Settings>) -> Loaded {
        let main_is_whole = self.files.first().is_some_and(|(_, trust)| trust.is_whole());
        let trust_of = |problem: &Problem| self.files.iter().find(|(path, _)| *path == problem.file);
        self.problems.retain(|problem| {
            trust_of(problem).is_none_or(|(_, trust)| trust.covers(problem))
                && (main_is_whole || !problem.rests_on_others)
        });
        let files = &self.files;
        let order = |problem: &Problem| files.iter().position(|(path, _)| *path == problem.file);
        let in_order = |found: &mut Vec<Problem>| found.sort_by_cached_key(|one| (order(one), one.position));
        let mut problems = once_each(self.syntax.into_iter().chain(self.problems));
        in_order(&mut problems);
        let mut warnings = once_each(self.warnings);
        in_order(&mut warnings);
        let left_out = |scope: &Scope| problems.iter().any(|problem| problem.scope.holds(scope));
        self.jobs.retain(|(scope, ..)| !left_out(scope));
        let jobs = self.jobs.into_iter().map(|(_, job, digest)| (job, digest)).collect();
        Loaded::new(settings.filter(|_| main_is_whole), jobs, problems, warnings)
    }
}

/// A fault in `[defaults]` comes up once for every job.
fn once_each(found: impl IntoIterator<Item = Problem>) -> Vec<Problem> {
    let mut told = Vec::new();
    for problem in found {
        if !told.contains(&problem) {
            told.push(problem);
        }
    }
    told
}
