//! Quantiles of small samples.

/// The `q` quantile (0 to 1) of a sample, by nearest rank; 0 for an empty one.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "samples are far smaller than 2^53"
)]
pub fn quantile(sample: &[f64], q: f64) -> f64 {
    let mut sorted = sample.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1).min(sorted.len().saturating_sub(1))).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::quantile;

    #[test]
    fn quantiles_by_nearest_rank() {
        let sample = [4.0, 1.0, 3.0, 2.0];
        assert_eq!((quantile(&sample, 0.5), quantile(&sample, 0.99), quantile(&sample, 0.0)), (2.0, 4.0, 1.0));
        assert_eq!(quantile(&[], 0.5), 0.0);
    }
}
