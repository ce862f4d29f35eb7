import java.util.Arrays;

/**
 * Keeps the arithmetic mean of the most recent measurements.
 *
 * A fixed number of values is remembered in a ring buffer. Once the buffer
 * is full, every new value replaces the oldest one, so that memory use stays
 * constant no matter how long the program runs. All operations except
 * reset and snapshot take constant time.
 *
 * The class is not thread-safe. Callers that share an instance between
 * threads have to provide their own lock.
 */
public class SlidingMean {

    /** The remembered values, oldest value not necessarily first. */
    private final double[] ring;

    /** Position at which the next value will be written. */
    private int next;

    /** How many cells of the buffer are in use. */
    private int filled;

    /** Running total of all cells in use, kept up to date by every call. */
    private double total;

    /**
     * Creates an empty average.
     *
     * @param window how many measurements to remember, at least one
     * @throws IllegalArgumentException if the window is smaller than one
     */
    public SlidingMean(int window) {
        if (window < 1) {
            throw new IllegalArgumentException("window must be at least 1, got " + window);
        }
        ring = new double[window];
    }

    /**
     * Adds one measurement and forgets the oldest if the buffer is full.
     *
     * @param reading a finite number; infinities and NaN are refused because
     *                a single one would spoil the running total for good
     */
    public void add(double reading) {
        if (Double.isNaN(reading) || Double.isInfinite(reading)) {
            throw new IllegalArgumentException("not a finite number: " + reading);
        }
        if (filled == ring.length) {
            total -= ring[next];
        } else {
            filled++;
        }
        ring[next] = reading;
        total += reading;
        next = (next + 1) % ring.length;

        // Rounding errors creep in with every subtraction. Adding up the
        // cells afresh once per lap keeps them from growing without bound.
        if (next == 0) {
            total = Arrays.stream(ring, 0, filled).sum();
        }
    }

    /**
     * Returns the mean of the remembered values.
     *
     * @return the mean, or zero while nothing has been added yet
     */
    public double mean() {
        return filled == 0 ? 0.0 : total / filled;
    }

    /** Tells whether the oldest value will be lost at the next call of add. */
    public boolean isFull() {
        return filled == ring.length;
    }

    /** Returns a copy of the values in use, from the oldest to the newest. */
    public double[] snapshot() {
        double[] copy = new double[filled];
        int oldest = isFull() ? next : 0;
        for (int i = 0; i < filled; i++) {
            copy[i] = ring[(oldest + i) % ring.length];
        }
        return copy;
    }

    /** Forgets everything, as if the object had just been created. */
    public void reset() {
        Arrays.fill(ring, 0.0);
        next = 0;
        filled = 0;
        total = 0.0;
    }
}
