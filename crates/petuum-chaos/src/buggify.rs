//! Places where the product may lawfully be slower, smaller or clumsier than it is, so that what is rare becomes common.

use crate::catalogue::catalogue;

catalogue! {
    /// A place that a simulation may make clumsy: the rules that must hold all the same, and what it does.
    Buggify(rules: &'static str, clumsiness: &'static str) {
        StreamLost = "stream.lost", "P4", "A client gives up a healthy commit stream and sends again what is open.";
        AnswersReversed = "answers.reversed", "P4", "Answers that came together are taken in from the last on.";
        MessageDoubled = "message.doubled", "P4", "A message is sent twice in one frame.";
        MessagesSwapped = "messages.swapped", "P4", "Two messages of a frame change places: one comes before its turn.";
        GatherOne = "gather.one", "P8", "An entry holds one message although more wait.";
        ErrandTwice = "errand.twice", "P5", "A driver does not hear an answer and asks again.";
        ErrandLate = "errand.late", "P5", "A driver's command is sent after a pause, perhaps by a deposed driver.";
        ErrandStray = "errand.stray", "P5", "A driver's command arrives once more, seconds after it was answered.";
        ExpiryLate = "expiry.late", "P16, P17", "A removal for want of heartbeats is logged after a pause.";
        ReadElsewhere = "read.elsewhere", "P10", "A read begins at another replica than the nearest.";
        FrameOfOneEntry = "frame.one-entry", "P8", "An append request carries one entry.";
        PieceSmall = "piece.small", "P19", "A snapshot is cut into pieces of a few bytes.";
        PieceSlow = "piece.slow", "P19", "A receiver takes a snapshot's next piece in after a pause.";
        PieceLate = "piece.late", "P19", "A snapshot's next piece is written after a pause.";
    }
}
