package headwater.store;

import io.delta.storage.HadoopFileSystemLogStore;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** Delta's commits on S3: of several drivers that write one version, exactly one does. */
public class ConditionalPutLogStore extends HadoopFileSystemLogStore {
  /** As Delta makes it, by the name of its class. */
  public ConditionalPutLogStore(Configuration configuration) {
    super(configuration);
  }

  @Override
  public void write(Path path, Iterator<String> actions, Boolean overwrite, Configuration configuration)
      throws IOException {
    FileSystem store = path.getFileSystem(configuration);
    if (overwrite) {
      try (FSDataOutputStream stream = store.create(path, true)) {
        writeLines(stream, actions);
      }
      return;
    }
    ConditionalPut put = new ConditionalPut(store, path);
    writeLines(put.stream(), actions);
    if (!put.finish()) {
      throw new FileAlreadyExistsException(path.toString());
    }
  }

  private static void writeLines(FSDataOutputStream stream, Iterator<String> actions) throws IOException {
    while (actions.hasNext()) {
      stream.write((actions.next() + "\n").getBytes(StandardCharsets.UTF_8));
    }
  }

  @Override
  public Boolean isPartialWriteVisible(Path path, Configuration configuration) {
    return false;
  }
}
