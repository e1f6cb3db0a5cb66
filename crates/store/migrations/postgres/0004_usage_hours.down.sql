-- Sums of what stays: nothing is lost.
DROP TRIGGER operations_note_later_generation ON operations;
DROP FUNCTION holdfast_note_later_generation;
DROP TABLE usage_summed;
DROP TABLE late_ends;
DROP TABLE usage_hours;
