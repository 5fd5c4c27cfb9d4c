package headwater.delta;

import java.util.HashMap;
import java.util.Locale;
import java.util.Map;

import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.delta.ColumnWithDefaultExprUtils;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.sources.DeltaDataSource;
import org.apache.spark.sql.execution.LogicalRDD$;
import org.apache.spark.sql.execution.streaming.Sink;
import org.apache.spark.sql.sources.StreamSinkProvider;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

import scala.collection.immutable.Seq;

/**
 * Delta's own sink for streams, which finds in the table's checksum file whether the table has a batch. By itself it has Spark
 * compute the table's whole state for that, in three jobs for each batch.
 */
public final class TableSink implements StreamSinkProvider {
    public Sink createSink(SQLContext context, scala.collection.immutable.Map<String, String> options, Seq<String> partitions, OutputMode mode) {
        Sink sink = new DeltaDataSource().createSink(context, options, partitions, mode);
        return new Prepared(sink, context.sparkSession(), new Path(options.apply("path")));
    }

    /** Gives the table's newest known snapshot its transactions before each batch; the batch itself is Delta's. */
    private static final class Prepared implements Sink {
        private final Sink sink;
        private final SparkSession session;
        private final Path path;

        Prepared(Sink sink, SparkSession session, Path path) {
            this.sink = sink;
            this.session = session;
            this.path = path;
        }

        public void addBatch(long batch, Dataset<Row> rows) {
            // Not brought up to date, which is a request: if somebody has committed since, Delta takes its own way.
            Snapshot snapshot = DeltaLog.forTable(session, path).unsafeVolatileSnapshot();
            KnownTransactions.give(snapshot);
            boolean planned = addsColumns(snapshot) || casts(rows.schema(), snapshot.schema());
            sink.addBatch(batch, planned ? ofOwnExecution(rows) : rows);
        }

        /** Whether Delta adds columns to the rows: generated ones, and identities. */
        private static boolean addsColumns(Snapshot snapshot) {
            return ColumnWithDefaultExprUtils.tableHasDefaultExpr(snapshot.protocol(), snapshot.metadata(), false);
        }

        /** Whether Delta casts columns to their types in the table, or gives them the letter case of the table's names. */
        private static boolean casts(StructType rows, StructType table) {
            Map<String, StructField> stored = new HashMap<>();
            for (StructField column : table.fields()) {
                stored.put(column.name().toLowerCase(Locale.ROOT), column);
            }
            for (StructField column : rows.fields()) {
                StructField same = stored.get(column.name().toLowerCase(Locale.ROOT));
                if (same != null && !(same.name().equals(column.name())
                        && DataTypeUtils.equalsIgnoreNullability(column.dataType(), same.dataType()))) {
                    return true;
                }
            }
            return false;
        }

        /**
         * The rows as foreachBatch gives them. Delta plans a stream's rows anew to add, cast or rename columns, and Spark reads the
         * batch's counts from the plan that it has made itself, which then nobody runs: no row was read, and no rule broken.
         */
        private static Dataset<Row> ofOwnExecution(Dataset<Row> rows) {
            org.apache.spark.sql.classic.Dataset<Row> streamed = (org.apache.spark.sql.classic.Dataset<Row>) rows;
            return org.apache.spark.sql.classic.Dataset.ofRows(
                streamed.sparkSession(),
                LogicalRDD$.MODULE$.fromDataset(streamed.queryExecution().toRdd(), streamed, false)
            );
        }

        /** What Spark reports as the sink. */
        public String toString() {
            return sink.toString();
        }
    }
}
