package headwater.store;

import java.io.IOException;
import java.util.Locale;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager;
import org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager;
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager;

/**
 * Checkpoints on S3: a file that must be new (offsets, commits) has exactly one writer.
 *
 * <p>The setting is one for the whole session: a checkpoint on another file system is left to what Spark has for it. On Azure that
 * is a rename, which the store refuses where the name is taken; Hadoop's client only says that it failed, and Spark looks for the
 * exception that means another writer.
 */
public class ConditionalPutCheckpointFileManager extends FileSystemBasedCheckpointFileManager {
  private final CheckpointFileManager elsewhere;
  private final boolean azure;

  /** As Spark makes it, by the name of its class. */
  public ConditionalPutCheckpointFileManager(Path path, Configuration configuration) {
    super(path, configuration);
    String scheme = fs().getUri().getScheme().toLowerCase(Locale.ROOT);
    boolean ours = scheme.equals("s3") || scheme.equals("s3a");
    azure = scheme.equals("abfss");
    elsewhere = ours ? null : new FileContextBasedCheckpointFileManager(path, configuration);
  }

  @Override
  public CheckpointFileManager.CancellableFSDataOutputStream createAtomic(Path path, boolean overwrite) {
    if (elsewhere != null) {
      CheckpointFileManager.CancellableFSDataOutputStream renamed = elsewhere.createAtomic(path, overwrite);
      return azure && !overwrite ? new Renaming(renamed, path) : renamed;
    }
    try {
      return overwrite ? new Overwriting(fs().create(path, true)) : new Creating(new ConditionalPut(fs(), path), path);
    } catch (IOException failure) {
      throw ConditionalPutCheckpointFileManager.<RuntimeException>asItIs(failure);
    }
  }

  /** Scala declares no exceptions, and Spark expects the one that the file system threw. */
  @SuppressWarnings("unchecked")
  private static <T extends Throwable> T asItIs(Throwable failure) throws T {
    throw (T) failure;
  }

  /** A file that may replace another: it appears, whole, when it is closed. */
  private static final class Overwriting extends CheckpointFileManager.CancellableFSDataOutputStream {
    private final FSDataOutputStream stream;
    private boolean over;

    Overwriting(FSDataOutputStream stream) {
      super(stream);
      this.stream = stream;
    }

    @Override
    public synchronized void close() throws IOException {
      if (!over) {
        over = true;
        stream.close();
      }
    }

    @Override
    public synchronized void cancel() {
      if (!over) {
        over = true;
        stream.abort();
      }
    }
  }

  /** A file that must be new, and gets its name by a rename. */
  private final class Renaming extends CheckpointFileManager.CancellableFSDataOutputStream {
    private final CheckpointFileManager.CancellableFSDataOutputStream stream;
    private final Path path;

    Renaming(CheckpointFileManager.CancellableFSDataOutputStream stream, Path path) {
      super(stream);
      this.stream = stream;
      this.path = path;
    }

    @Override
    public void close() throws IOException {
      try {
        stream.close();
      } catch (IOException failure) {
        if (failure instanceof FileAlreadyExistsException || !elsewhere.exists(path)) {
          throw failure;
        }
        FileAlreadyExistsException taken = new FileAlreadyExistsException(path.toString());
        taken.initCause(failure);
        throw taken;
      }
    }

    @Override
    public void cancel() {
      stream.cancel();
    }
  }

  /** A file that must be new. */
  private static final class Creating extends CheckpointFileManager.CancellableFSDataOutputStream {
    private final ConditionalPut put;
    private final Path path;
    private boolean over;

    Creating(ConditionalPut put, Path path) {
      super(put.stream());
      this.put = put;
      this.path = path;
    }

    @Override
    public synchronized void close() throws IOException {
      if (over) {
        return;
      }
      over = true;
      if (!put.finish()) {
        throw new FileAlreadyExistsException(path.toString());
      }
    }

    @Override
    public synchronized void cancel() {
      over = true; // the store has seen nothing
    }
  }
}
