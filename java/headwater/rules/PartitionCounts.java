package headwater.rules;

import java.io.Serializable;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;

import org.apache.spark.TaskContext;
import org.apache.spark.util.AccumulatorV2;
import org.apache.spark.util.TaskCompletionListener;

/**
 * Counts of the partitions of a query's step: one attempt of each partition counts, the newest. Spark's own accumulators add up
 * what each attempt says of a partition whose output was lost, or that is evaluated for more than one job.
 */
public final class PartitionCounts extends AccumulatorV2<PartitionCounts.Attempt, long[]> {
    private static final long serialVersionUID = 1L;

    private final int width;
    // An executor sends it with its heartbeats while tasks end.
    private final ConcurrentHashMap<Integer, Attempt> newest = new ConcurrentHashMap<>();

    /** @param width how many counts there are */
    PartitionCounts(int width) {
        this.width = width;
    }

    /**
     * Counts to be filled by a task. They are published when it ends; those of a task that fails are dropped by Spark.
     *
     * @param execution which evaluation of the step this is, ascending: only the newest one counts
     * @param partition of the step's rows, whatever reads them
     */
    public long[] start(int execution, int partition) {
        long[] counts = new long[width];
        TaskContext task = TaskContext.get();
        if (task != null) {
            TaskCompletionListener publish = ended -> add(new Attempt(execution, partition, ended, counts));
            task.addTaskCompletionListener(publish);
        }
        return counts;
    }

    @Override
    public boolean isZero() {
        return newest.isEmpty();
    }

    @Override
    public PartitionCounts copy() {
        PartitionCounts copy = new PartitionCounts(width);
        copy.newest.putAll(newest);
        return copy;
    }

    @Override
    public PartitionCounts copyAndReset() {
        return new PartitionCounts(width);
    }

    @Override
    public void reset() {
        newest.clear();
    }

    @Override
    public void add(Attempt attempt) {
        newest.merge(attempt.partition, attempt, (one, other) -> other.isNewerThan(one) ? other : one);
    }

    @Override
    public void merge(AccumulatorV2<Attempt, long[]> other) {
        ((PartitionCounts) other).newest.values().forEach(this::add);
    }

    /** Sums over the partitions. */
    @Override
    public long[] value() {
        List<Attempt> attempts = List.copyOf(newest.values());
        int last = attempts.stream().mapToInt(attempt -> attempt.execution).max().orElse(0);
        long[] sums = new long[width];
        for (Attempt attempt : attempts) {
            for (int i = 0; i < width && attempt.execution == last; i++) {
                sums[i] += attempt.counts[i];
            }
        }
        return sums;
    }

    /** What one attempt of a task counted in one partition. */
    public static final class Attempt implements Serializable {
        private static final long serialVersionUID = 1L;

        private final int execution;
        private final int partition;
        private final int[] order;
        private final long[] counts;

        Attempt(int execution, int partition, TaskContext task, long[] counts) {
            this.execution = execution;
            this.partition = partition;
            this.order = new int[] {execution, task.stageId(), task.stageAttemptNumber(), task.attemptNumber()};
            this.counts = counts;
        }

        boolean isNewerThan(Attempt other) {
            return Arrays.compare(order, other.order) > 0;
        }
    }
}
