import java.io.IOException;
import java.util.Arrays;
import java.util.Locale;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.sql.SparkSession;
import scala.Tuple2;

/**
 * Counts the words of a text: WordCount INPUT OUTPUT. A line of the output is word, tab, count.
 *
 * <p>A word is a run of the letters A to Z, in lower case.
 */
public final class WordCount {
    private WordCount() {}

    public static void main(String[] arguments) throws IOException {
        if (arguments.length != 2) {
            System.err.println("usage: WordCount INPUT OUTPUT");
            System.exit(2);
        }
        try (SparkSession spark = SparkSession.builder().appName("word-count").getOrCreate()) {
            JavaRDD<String> lines = spark.read().textFile(arguments[0]).javaRDD();
            lines.flatMap(line -> Arrays.asList(line.split("[^A-Za-z]+")).iterator())
                    .filter(word -> !word.isEmpty())
                    .mapToPair(word -> new Tuple2<>(word.toLowerCase(Locale.ROOT), 1L))
                    .reduceByKey(Long::sum)
                    .map(pair -> pair._1() + "\t" + pair._2())
                    .saveAsTextFile(arguments[1]);
        }
    }
}
