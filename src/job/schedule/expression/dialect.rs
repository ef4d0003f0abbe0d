use super::super::error::FieldProblem;

/// Refuses what only other dialects of cron know, each with its own remedy.
pub fn refuse_other_dialects(item: &str) -> Result<(), FieldProblem> {
    if item.is_empty() {
        return Err(FieldProblem::EmptyItem);
    }
    if item.contains('~') {
        return Err(FieldProblem::Random);
    }
    if item.contains('?') {
        return Err(FieldProblem::Question);
    }
    let base = item.split('/').next().unwrap_or(item);
    if base.len() > 1 && base.contains('*') && !base.contains('-') {
        return Err(FieldProblem::GluedStar);
    }
    Ok(())
}
