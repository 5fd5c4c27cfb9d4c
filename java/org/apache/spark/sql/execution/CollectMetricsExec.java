package org.apache.spark.sql.execution;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.types.StructType;

import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/**
 * For the compiler only, and not in the jar: Spark's class of this name, as far as our subclass sees it. Java refuses to extend what
 * the Scala compiler made, because a method has a wider return type than the one that it implements.
 */
public class CollectMetricsExec extends SparkPlan {
    public CollectMetricsExec(String name, Seq<NamedExpression> metrics, SparkPlan child) {
    }

    public String name() {
        throw new UnsupportedOperationException();
    }

    public Seq<NamedExpression> metricExpressions() {
        throw new UnsupportedOperationException();
    }

    public SparkPlan child() {
        throw new UnsupportedOperationException();
    }

    public long accumulatorId() {
        throw new UnsupportedOperationException();
    }

    public StructType metricsSchema() {
        throw new UnsupportedOperationException();
    }

    public Row collectedMetrics() {
        throw new UnsupportedOperationException();
    }

    public void resetMetrics() {
        throw new UnsupportedOperationException();
    }

    public CollectMetricsExec withNewChildInternal(SparkPlan child) {
        throw new UnsupportedOperationException();
    }

    public RDD<InternalRow> doExecute() {
        throw new UnsupportedOperationException();
    }

    public Seq<Attribute> output() {
        throw new UnsupportedOperationException();
    }

    public Seq<SparkPlan> children() {
        throw new UnsupportedOperationException();
    }

    public SparkPlan withNewChildrenInternal(IndexedSeq<SparkPlan> children) {
        throw new UnsupportedOperationException();
    }

    public boolean canEqual(Object other) {
        throw new UnsupportedOperationException();
    }

    public int productArity() {
        throw new UnsupportedOperationException();
    }

    public Object productElement(int place) {
        throw new UnsupportedOperationException();
    }
}
