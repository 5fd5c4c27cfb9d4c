package headwater.rules;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BindReferences;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericRowWithSchema;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.execution.CodegenSupport;
import org.apache.spark.sql.execution.CollectMetricsExec;
import org.apache.spark.sql.execution.SparkPlan;

import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractFunction2;

/**
 * Spark's step of observed metrics, for metrics that are counts. It is part of the code that Spark generates for its neighbours,
 * where Spark's own copies each row before and behind it, and it counts each partition once.
 */
public final class CountingExec extends CollectMetricsExec implements CodegenSupport {
    private static final long serialVersionUID = 1L;
    // A method of more code than this may be too long for the JIT compiler.
    private static final int MOST_IN_GENERATED_CODE = 24;

    private transient CodegenSupport parent;
    private transient String counted;
    private transient PartitionCounts counts;
    private final transient AtomicInteger executions = new AtomicInteger();

    public CountingExec(String name, Seq<NamedExpression> metrics, SparkPlan child) {
        super(name, metrics, child);
        CodegenSupport.$init$(this);
    }

    /** Returns whether all of these metrics are counts. */
    static boolean takes(Seq<NamedExpression> metrics) {
        return CollectionConverters.asJava(metrics).stream().allMatch(metric -> counted(metric) != null);
    }

    /** What a metric counts, null where it is no plain count. */
    private static Count counted(NamedExpression metric) {
        if (metric instanceof Alias && ((Alias) metric).child() instanceof AggregateExpression) {
            AggregateExpression aggregate = (AggregateExpression) ((Alias) metric).child();
            boolean plain = !aggregate.isDistinct() && aggregate.filter().isEmpty();
            return plain && aggregate.aggregateFunction() instanceof Count ? (Count) aggregate.aggregateFunction() : null;
        }
        return null;
    }

    /** For each metric, whether a row of the child counts. */
    private List<Expression> conditions() {
        List<Expression> conditions = new ArrayList<>();
        for (NamedExpression metric : CollectionConverters.asJava(metricExpressions())) {
            Expression all = null;
            for (Expression value : CollectionConverters.asJava(counted(metric).children())) {
                if (value.nullable()) {
                    all = all == null ? new IsNotNull(value) : new And(all, new IsNotNull(value));
                }
            }
            conditions.add(all == null ? Literal.TrueLiteral() : all);
        }
        return conditions;
    }

    private synchronized PartitionCounts counts() {
        if (counts == null) {
            counts = new PartitionCounts(metricExpressions().size());
            // Without a name: of one with a name Spark asks the value after each task.
            counts.register(sparkContext(), Option.empty(), false);
        }
        return counts;
    }

    @Override
    public long accumulatorId() {
        return counts().id();
    }

    @Override
    public Row collectedMetrics() {
        long[] sums = counts().value();
        Object[] values = new Object[sums.length];
        for (int i = 0; i < sums.length; i++) {
            values[i] = sums[i];
        }
        return new GenericRowWithSchema(values, metricsSchema());
    }

    @Override
    public void resetMetrics() {
        super.resetMetrics();
        counts().reset();
    }

    @Override
    public RDD<InternalRow> doExecute() {
        Seq<Expression> conditions = CollectionConverters.asScala(conditions()).toSeq();
        RowByRow rows = new RowByRow(counts(), executions.incrementAndGet(), conditions, child().output());
        return child().execute().mapPartitionsWithIndex(rows, true, ClassTag$.MODULE$.apply(InternalRow.class));
    }

    @Override
    public boolean supportCodegen() {
        return child() instanceof CodegenSupport && metricExpressions().size() <= MOST_IN_GENERATED_CODE;
    }

    @Override
    public CodegenSupport parent() {
        return parent;
    }

    @Override
    public void parent_$eq(CodegenSupport consumer) {
        this.parent = consumer;
    }

    @Override
    public Seq<RDD<InternalRow>> inputRDDs() {
        return ((CodegenSupport) child()).inputRDDs();
    }

    @Override
    public String doProduce(CodegenContext ctx) {
        // Not where rows are consumed: a join makes that code more than once.
        String published = ctx.addReferenceObj("counts", counts(), PartitionCounts.class.getName());
        String start = published + ".start(" + executions.incrementAndGet() + ", partitionIndex);";
        counted = ctx.addMutableState("long[]", "counted", new Initialized(start), true, true);
        return ((CodegenSupport) child()).produce(ctx, this);
    }

    @Override
    public String doConsume(CodegenContext ctx, Seq<ExprCode> input, ExprCode row) {
        StringBuilder code = new StringBuilder();
        ctx.currentVars_$eq(input);
        int place = 0;
        for (Expression condition : conditions()) {
            String count = counted + "[" + place++ + "]++;\n";
            if (condition instanceof Literal) {
                code.append(count);
            } else {
                ExprCode holds = bound(condition, child().output()).genCode(ctx);
                code.append("{\n").append(holds.code()).append("\nif (").append(holds.value()).append(") ").append(count);
                code.append("}\n");
            }
        }
        return code + consume(ctx, input, null);
    }

    private static Expression bound(Expression expression, Seq<Attribute> columns) {
        return BindReferences.bindReference(expression, org.apache.spark.sql.catalyst.expressions.package$.MODULE$.AttributeSeq(columns), false);
    }

    @Override
    public CollectMetricsExec withNewChildInternal(SparkPlan newChild) {
        return new CountingExec(name(), metricExpressions(), newChild);
    }

    /** The code that gives a field of the generated class its first value. */
    private static final class Initialized extends AbstractFunction1<String, String> {
        private final String value;

        Initialized(String value) {
            this.value = value;
        }

        public String apply(String field) {
            return field + " = " + value;
        }
    }

    /** Counts rows that come from a step without generated code. */
    private static final class RowByRow extends AbstractFunction2<Object, Iterator<InternalRow>, Iterator<InternalRow>>
            implements java.io.Serializable {
        private static final long serialVersionUID = 1L;

        private final PartitionCounts published;
        private final int execution;
        private final Seq<Expression> conditions;
        private final Seq<Attribute> columns;

        RowByRow(PartitionCounts published, int execution, Seq<Expression> conditions, Seq<Attribute> columns) {
            this.published = published;
            this.execution = execution;
            this.conditions = conditions;
            this.columns = columns;
        }

        public Iterator<InternalRow> apply(Object partition, Iterator<InternalRow> rows) {
            long[] counts = published.start(execution, (Integer) partition);
            UnsafeProjection judged = UnsafeProjection.create(conditions, columns);
            judged.initialize((Integer) partition);
            return rows.map(new AbstractFunction1<InternalRow, InternalRow>() {
                public InternalRow apply(InternalRow row) {
                    UnsafeRow holds = judged.apply(row);
                    for (int i = 0; i < counts.length; i++) {
                        counts[i] += holds.getBoolean(i) ? 1 : 0;
                    }
                    return row;
                }
            });
        }
    }
}
