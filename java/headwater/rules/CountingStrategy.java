package headwater.rules;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.CollectMetrics;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.internal.SQLConf;

import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Plans observations that only count by {@link CountingExec}; the logical plan, and what Spark optimizes, stays as it is. */
public final class CountingStrategy extends SparkStrategy {
    private static final long serialVersionUID = 1L;
    private static final String SETTING = "spark.headwater.exactCounts";

    /** Use it in a session, and in those that are cloned from it; does nothing where it is used. */
    public static void use(SparkSession session) {
        var methods = session.experimental();
        synchronized (methods) {
            Seq<SparkStrategy> known = methods.extraStrategies();
            if (CollectionConverters.asJava(known).stream().noneMatch(CountingStrategy.class::isInstance)) {
                methods.extraStrategies_$eq(known.appended(new CountingStrategy()).toSeq());
            }
        }
    }

    @Override
    public Seq<SparkPlan> apply(LogicalPlan plan) {
        java.util.List<SparkPlan> planned = java.util.List.of();
        if (plan instanceof CollectMetrics && Boolean.parseBoolean(SQLConf.get().getConfString(SETTING, "true"))) {
            CollectMetrics observed = (CollectMetrics) plan;
            if (CountingExec.takes(observed.metrics())) {
                planned = java.util.List.of(new CountingExec(observed.name(), observed.metrics(), planLater(observed.child())));
            }
        }
        return CollectionConverters.asScala(planned).toSeq();
    }
}
