//! Two opinions into one score: words, and meaning.

/// How much meaning counts beside words.
const MEANING: f32 = 0.65;

/// A tool that stands out this many standard deviations less than the mean counts nothing by
/// its meaning, and one as many more counts one. What a model takes for near differs from model
/// to model and from question to question; how far a tool stands out among the others less so.
const LOWEST: f32 = -2.0;
const RANGE: f32 = 5.0;

/// Scores of 0–1 from those by words (unbounded, 0 for none in common) and from cosines;
/// a document whose vector is not there yet goes by its words. `[len]`, as both are.
pub(crate) fn fuse(words: &[f32], cosines: Option<&[Option<f32>]>) -> Vec<f32> {
    let most = words.iter().copied().fold(0.0, f32::max);
    let share = |score: f32| if most > 0.0 { score / most } else { 0.0 };
    let Some(cosines) = cosines else { return words.iter().map(|score| share(*score)).collect() };
    let known = || cosines.iter().flatten();
    let count = known().count().max(1) as f32;
    let mean = known().sum::<f32>() / count;
    let variance = known().map(|cosine| (cosine - mean).powi(2)).sum::<f32>() / count;
    let deviation = variance.sqrt().max(1e-3);
    let stands_out = |cosine: f32| ((cosine - mean) / deviation - LOWEST) / RANGE;
    let one = |(score, cosine): (&f32, &Option<f32>)| {
        let words = share(*score);
        let meaning = cosine.map_or(words, stands_out);
        let both = (1.0 - MEANING) * words + MEANING * meaning;
        // Into 0–1 without making any two of them equal.
        1.0 - (-both.max(0.0)).exp()
    };
    words.iter().zip(cosines).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::fuse;

    #[test]
    fn scores_are_between_0_and_1_and_agree_with_both() {
        assert_eq!(fuse(&[2.0, 4.0, 0.0], None), [0.5, 1.0, 0.0]);
        let both = fuse(&[2.0, 4.0, 0.0], Some(&[Some(0.1), Some(0.9), Some(0.5)]));
        assert!(both.iter().all(|score| (0.0..=1.0).contains(score)), "{both:?}");
        assert!(both[1] > both[0] && both[1] > both[2], "{both:?}");
        let equal = fuse(&[1.0, 1.0], Some(&[Some(0.2), Some(0.3)]));
        assert!(equal[1] > equal[0], "{equal:?}");
        let waiting = fuse(&[1.0, 0.0], Some(&[None, None]));
        assert!(waiting[0] > waiting[1], "{waiting:?}");
        // One tool alone is found, too.
        assert!(fuse(&[0.0], Some(&[Some(0.3)]))[0] > 0.0);
        assert!(fuse(&[], Some(&[])).is_empty());
    }
}
