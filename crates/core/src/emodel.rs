//! The quality of a telephone call, estimated from delay and loss: the E-model of ITU-T G.107 with its default values for all
//! but these two.
//!
//! ```text
//! R      = 93.2 - Id - Ie,eff                                                   G.107 §7.1, defaults
//! Id     = 0.024 d + 0.11 (d - 177.3) H(d - 177.3)                              d in ms, mouth to ear
//! Ie,eff = Ie + (95 - Ie) Ppl / (Ppl / BurstR + Bpl)                            G.107 §7.5; Ppl in percent
//! MOS    = 1 + 0.035 R + R (R - 60) (100 - R) 7e-6, from 1 (R <= 0) to 4.5      G.107 Annex B
//! ```
//!
//! with Ie = 0 and Bpl = 25.1 for G.711 with concealment of losses (G.113 Appendix I) and BurstR = 1 (random losses).
//! The formula for Id is the approximation of Cole and Rosenbluth (Voice over IP performance monitoring, CCR 31(2),
//! 2001).

use crate::units::Span;

/// Time between two packets of a call, which is also the duration of the speech in each (RFC 3551 §4.2).
pub const PACKET_TIME: Span = Span::from_millis(20);

/// Returns the rating R for a delay from mouth to ear and a share of packets lost.
pub fn rating(delay: Span, loss: f64) -> f64 {
    let d = delay.as_millis_f64();
    let id = 0.024 * d + 0.11 * (d - 177.3).max(0.0);
    let percent = 100.0 * loss;
    93.2 - id - 95.0 * percent / (percent + 25.1)
}

/// Returns the mean opinion score of a rating (G.107 Annex B).
pub fn mos(r: f64) -> f64 {
    if r <= 0.0 {
        return 1.0;
    }
    let r = r.min(100.0);
    // The polynomial dips below 1 for small ratings.
    (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With all defaults of G.107, R is 93.2 and MOS 4.41. Table B.1 has the limits of the classes of user
    /// satisfaction.
    #[test]
    fn ratings_give_the_scores_of_g107() {
        let hundredths = |r: f64| (mos(r) * 100.0).round() / 100.0;
        assert_eq!(hundredths(93.2), 4.41);
        for (r, expected) in [(90.0, 4.34), (80.0, 4.03), (70.0, 3.60), (60.0, 3.10), (50.0, 2.58)] {
            assert!((mos(r) - expected).abs() < 0.011, "{r}: {}", mos(r));
        }
        assert_eq!((mos(-5.0), mos(3.0), mos(100.0)), (1.0, 1.0, 4.5));
    }

    /// Computed by hand: 100 ms cost 2.4; 200 ms cost 4.8 + 0.11 * 22.7 = 7.297; 1 % of loss costs 95/26.1 = 3.640.
    #[test]
    fn delay_and_loss_cost_what_the_formulas_say() {
        let r = |ms, loss| (rating(Span::from_millis(ms), loss) * 1000.0).round() / 1000.0;
        assert_eq!((r(0, 0.0), r(100, 0.0), r(200, 0.0)), (93.2, 90.8, 85.903));
        assert_eq!((r(0, 0.01), r(0, 0.251)), (89.56, 45.7));
    }
}
